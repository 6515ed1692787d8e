// Renders a Helm chart with the engine that Helm itself is made of: Go's text/template and sprig, with the few functions
// that Helm adds. It is for checking the chart where no `helm` is to be had, and installs nothing.
//
// usage: go run helm_render.go CHART [-notes] [VALUES.yaml…], for the Kubernetes of $KUBE_VERSION
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/ghodss/yaml"
)

type object = map[string]interface{}

func main() {
	if err := render(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("name a chart")
	}
	chart, rest := arguments[0], arguments[1:]
	notes := len(rest) > 0 && rest[0] == "-notes"
	if notes {
		rest = rest[1:]
	}
	about, err := read(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return err
	}
	values := object{}
	for _, file := range append([]string{filepath.Join(chart, "values.yaml")}, rest...) {
		more, err := read(file)
		if err != nil {
			return err
		}
		merge(values, more)
	}
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		return err
	}
	sort.Strings(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := all.New(filepath.Base(file)).Parse(string(text)); err != nil {
			return err
		}
	}
	dot := object{
		"Values":       values,
		"Capabilities": object{"KubeVersion": object{"Version": "v" + os.Getenv("KUBE_VERSION")}},
		"Chart":        object{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
		"Release":      object{"Name": "lb", "Namespace": "agents", "Service": "Helm", "IsInstall": true},
	}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") || notes != (name == "NOTES.txt") {
			continue
		}
		var out bytes.Buffer
		if err := all.ExecuteTemplate(&out, name, dot); err != nil {
			return err
		}
		text := out.String()
		if strings.Contains(text, "<no value>") {
			return fmt.Errorf("%s uses a value that is not there", name)
		}
		if strings.TrimSpace(text) != "" && !notes {
			fmt.Println("---")
		}
		fmt.Print(text)
	}
	return nil
}

func functions(all *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	delete(known, "env")
	delete(known, "expandenv")
	known["include"] = func(name string, dot interface{}) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, dot)
		return out.String(), err
	}
	known["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	known["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(message)
		}
		return value, nil
	}
	known["fail"] = func(message string) (string, error) { return "", errors.New(message) }
	return known
}

func read(file string) (object, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found := object{}
	return found, yaml.Unmarshal(text, &found)
}

// merge puts what the user says above the defaults, as deep as both are maps.
func merge(base, above object) {
	for key, value := range above {
		if inner, ok := value.(object); ok {
			if known, ok := base[key].(object); ok {
				merge(known, inner)
				continue
			}
		}
		base[key] = value
	}
}
