// Light, dark, or as the system has it.

const NAMES = ["system", "light", "dark"] as const;
export type Theme = (typeof NAMES)[number];
const KEPT = "loopbreaker.theme";

class Themes {
  name = $state<Theme>(read());

  constructor() {
    this.apply();
  }

  next(): void {
    this.name = NAMES[(NAMES.indexOf(this.name) + 1) % NAMES.length] ?? "system";
    this.apply();
    try {
      localStorage.setItem(KEPT, this.name);
    } catch {
      // Where nothing may be kept, the choice lasts as long as the page.
    }
  }

  private apply(): void {
    if (this.name === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = this.name;
  }
}

function read(): Theme {
  try {
    return NAMES.find((name) => name === localStorage.getItem(KEPT)) ?? "system";
  } catch {
    return "system";
  }
}

export const themes = new Themes();
