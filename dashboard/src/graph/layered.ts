// A layered layout that is the same every time: the map of a fleet must not move under the eyes of the person on call.

export interface Link {
  from: string;
  to: string;
}

export interface Placed {
  id: string;
  x: number;
  y: number;
  rank: number;
}

export interface Layout {
  nodes: Map<string, Placed>;
  /** Links that go back to where they came from: a loop is drawn as a loop. */
  back: Set<string>;
  width: number;
  height: number;
}

export interface Spacing {
  width: number;
  height: number;
  gapX: number;
  gapY: number;
  /** Columns of agents that talk to nobody. */
  columns: number;
}

const SWEEPS = 6;

export const linkId = (link: Link) => `${link.from}\u0000${link.to}`;

/** Places every node. Connected agents stand in ranks from left to right, the others in a grid below. */
export function layered(ids: readonly string[], links: readonly Link[], spacing: Spacing): Layout {
  const names = [...new Set(ids)].sort();
  const known = new Set(names);
  const seen = new Set<string>();
  const edges = links
    .filter((link) => known.has(link.from) && known.has(link.to) && link.from !== link.to)
    .filter((link) => !seen.has(linkId(link)) && seen.add(linkId(link)))
    .sort((a, b) => (linkId(a) < linkId(b) ? -1 : 1));
  const back = backLinks(names, edges);
  for (const link of links) if (link.from === link.to) back.add(linkId(link));
  const forward = edges.filter((link) => !back.has(linkId(link)));
  const ranks = longestPaths(names, forward);

  const nodes = new Map<string, Placed>();
  const stepX = spacing.width + spacing.gapX;
  const stepY = spacing.height + spacing.gapY;
  let top = 0;
  let width = 0;
  const alone: string[] = [];
  for (const component of components(names, edges)) {
    if (component.length === 1) {
      alone.push(...component);
      continue;
    }
    const rows = ordered(component, forward, ranks);
    const tallest = Math.max(...rows.map((row) => row.length));
    rows.forEach((row, rank) => {
      const offset = ((tallest - row.length) * stepY) / 2;
      row.forEach((id, index) => nodes.set(id, { id, rank, x: rank * stepX, y: top + offset + index * stepY }));
    });
    width = Math.max(width, rows.length * stepX - spacing.gapX);
    top += tallest * stepY + spacing.gapY;
  }
  const columns = Math.max(1, spacing.columns);
  alone.forEach((id, index) => {
    const [column, row] = [index % columns, Math.floor(index / columns)];
    const x = column * (spacing.width + spacing.gapX / 2);
    nodes.set(id, { id, rank: column, x, y: top + row * stepY });
    width = Math.max(width, x + spacing.width);
  });
  top += Math.ceil(alone.length / columns) * stepY;
  return { nodes, back, width, height: Math.max(0, top - spacing.gapY) };
}

/** Links whose removal leaves no cycle, found by depth-first search in the order of names, sources first. */
function backLinks(names: readonly string[], edges: readonly Link[]): Set<string> {
  const out = grouped(edges, (link) => link.from);
  const into = new Set(edges.map((link) => link.to));
  const state = new Map<string, "open" | "done">();
  const back = new Set<string>();
  const starts = [...names].sort((a, b) => Number(into.has(a)) - Number(into.has(b)) || (a < b ? -1 : 1));
  for (const start of starts) {
    if (state.has(start)) continue;
    // A stack of its own: a chain of thousands of agents must not end the page.
    const stack = [{ id: start, next: 0 }];
    state.set(start, "open");
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      const link = out.get(top.id)?.[top.next++];
      if (!link) {
        state.set(top.id, "done");
        stack.pop();
      } else if (state.get(link.to) === "open") {
        back.add(linkId(link));
      } else if (!state.has(link.to)) {
        state.set(link.to, "open");
        stack.push({ id: link.to, next: 0 });
      }
    }
  }
  return back;
}

function longestPaths(names: readonly string[], forward: readonly Link[]): Map<string, number> {
  const out = grouped(forward, (link) => link.from);
  const waiting = new Map<string, number>(names.map((id) => [id, 0]));
  for (const link of forward) waiting.set(link.to, (waiting.get(link.to) ?? 0) + 1);
  const ranks = new Map<string, number>(names.map((id) => [id, 0]));
  const ready = names.filter((id) => waiting.get(id) === 0);
  for (let id = ready.shift(); id !== undefined; id = ready.shift()) {
    for (const link of out.get(id) ?? []) {
      ranks.set(link.to, Math.max(ranks.get(link.to) ?? 0, (ranks.get(id) ?? 0) + 1));
      const left = (waiting.get(link.to) ?? 0) - 1;
      waiting.set(link.to, left);
      if (left === 0) ready.push(link.to);
    }
  }
  return ranks;
}

/** Groups of nodes that are linked, the largest first. */
function components(names: readonly string[], edges: readonly Link[]): string[][] {
  const root = new Map<string, string>(names.map((id) => [id, id]));
  const find = (id: string): string => {
    let at = id;
    for (let above = root.get(at); above !== undefined && above !== at; above = root.get(at)) at = above;
    root.set(id, at);
    return at;
  };
  for (const link of edges) root.set(find(link.from), find(link.to));
  const groups = grouped(names, find);
  return [...groups.values()].sort((a, b) => b.length - a.length || ((a[0] ?? "") < (b[0] ?? "") ? -1 : 1));
}

/** The nodes of one component by rank, each rank ordered so that few links cross. */
function ordered(component: readonly string[], forward: readonly Link[], ranks: Map<string, number>): string[][] {
  const inside = new Set(component);
  const own = forward.filter((link) => inside.has(link.from));
  const above = grouped(own, (link) => link.to);
  const below = grouped(own, (link) => link.from);
  const rows: string[][] = [];
  for (const id of component) (rows[ranks.get(id) ?? 0] ??= []).push(id);
  for (let rank = 0; rank < rows.length; rank++) rows[rank] ??= [];
  const place = new Map<string, number>();
  const note = (row: string[]) => row.forEach((id, index) => place.set(id, index));
  rows.forEach(note);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : [...rows].reverse()) {
      const weight = new Map<string, number>();
      for (const id of row) {
        const near = (down ? above : below).get(id)?.map((link) => place.get(down ? link.from : link.to) ?? 0) ?? [];
        const mean = near.reduce((sum, index) => sum + index, 0) / near.length;
        weight.set(id, near.length > 0 ? mean : (place.get(id) ?? 0));
      }
      row.sort((a, b) => (weight.get(a) ?? 0) - (weight.get(b) ?? 0) || (a < b ? -1 : 1));
      note(row);
    }
  }
  return rows;
}

function grouped<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}
