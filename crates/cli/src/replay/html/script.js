// The page is complete without this script; it only adds the filter, names of cells, and jumps to steps.
const form = document.querySelector("form.filter");
const runs = [...document.querySelectorAll("article.run")];
const none = document.querySelector("p.none");
const words = new Map();

// Texts are looked through only once somebody searches, since a page may have megabytes of them.
const wordsOf = (run) => {
  if (!words.has(run)) words.set(run, run.textContent.toLowerCase());
  return words.get(run);
};

const filter = () => {
  const verdict = form.elements.verdict.value;
  const text = form.elements.text.value.trim().toLowerCase();
  let shown = 0;
  for (const run of runs) {
    const fits = (verdict === "all" || run.dataset.verdict === verdict) && (text === "" || wordsOf(run).includes(text));
    run.hidden = !fits;
    if (fits) shown += 1;
  }
  none.hidden = shown > 0;
  form.querySelector("output").textContent = `${shown} of ${runs.length} shown`;
};

const stepOf = (cell) => {
  const run = cell.closest("article.run");
  if (!run) return null;
  const index = [...cell.parentElement.children].indexOf(cell);
  return { run, index, line: document.getElementById(`${run.id}-${index}`) };
};

const NAMES = {
  onset: "first time", repeat: "redundant repeat", warned: "warning", certain: "loop certain", hint: "hint",
  throttle: "throttle", pause: "pause", reject: "reject", spared: "would not have happened",
};

document.addEventListener("mouseover", ({ target }) => {
  if (!target.matches(".strip > i") || target.title) return;
  const step = stepOf(target);
  if (!step) return;
  const tool = step.line?.querySelector(".tool").textContent;
  const marks = [...target.classList].map((name) => NAMES[name]);
  target.title = [`step ${step.index}`, tool, ...marks].filter(Boolean).join(" · ");
});

document.addEventListener("click", ({ target }) => {
  if (!target.matches(".strip > i")) return;
  const line = stepOf(target)?.line;
  if (!line) return;
  line.closest("details").open = true;
  document.querySelector("li.chosen")?.classList.remove("chosen");
  line.classList.add("chosen");
  line.scrollIntoView({ block: "center" });
});

form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
filter();
