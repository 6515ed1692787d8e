// Keys: each screen says which it takes; what somebody types is text, never a command.

export type Keys = Record<string, () => void>;

/** What Space or Enter does something to by itself. */
const PRESSED = "button, a, summary, input:not([type=range]), select, [role=button], [role=link]";

/** The key of a command, or `null` when the event belongs to a field or to the browser. */
export function chord(event: KeyboardEvent): string | null {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return null;
  const target = event.target;
  // Whoever has gone to a button, link or fold presses it with these.
  const isPress = event.key === " " || event.key === "Enter";
  if (isPress && target instanceof Element && target.closest(PRESSED)) return null;
  if (target instanceof HTMLElement && event.key !== "Escape") {
    const isSlider = target instanceof HTMLInputElement && target.type === "range";
    if (isSlider) return /^(Arrow|Home|End|Page)/.test(event.key) ? null : event.key;
    const isToggle = target instanceof HTMLInputElement && (target.type === "checkbox" || target.type === "radio");
    if (!isToggle && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return null;
    if (target.isContentEditable) return null;
  }
  return event.key;
}

const layers: Keys[] = [];

/** Takes keys until the returned function is called; the last layer that knows a key gets it. */
export function takeKeys(keys: Keys): () => void {
  layers.push(keys);
  return () => {
    const index = layers.indexOf(keys);
    if (index >= 0) layers.splice(index, 1);
  };
}

export function handleKey(event: KeyboardEvent): void {
  const key = chord(event);
  if (key === null) return;
  for (let index = layers.length - 1; index >= 0; index--) {
    const command = layers[index]?.[key];
    if (!command) continue;
    event.preventDefault();
    command();
    return;
  }
}
