// The topology as boxes and curves, ready to be drawn.
import type { Topology, TopologyEdge, TopologyNode } from "../api/shapes";
import { layered, linkId, type Link } from "./layered";

export interface Box {
  key: string;
  node: TopologyNode;
  x: number;
  y: number;
}

export interface Curve {
  key: string;
  edge: TopologyEdge;
  path: string;
  /** Where its label stands. */
  x: number;
  y: number;
  loops: boolean;
  width: number;
}

export interface FleetMap {
  boxes: Box[];
  curves: Curve[];
  width: number;
  height: number;
  /** Agents that are not drawn. */
  left: number;
}

export const BOX = { width: 188, height: 54 };
/** More agents than this are noise: the rest is in the table. */
export const MAX_BOXES = 80;

const ORDER = ["loop", "violation", "paused", "warning", "active", "idle", "dead"];

/** How urgent a state is: 0 comes first. */
export const urgency = (state: string) => (ORDER.indexOf(state) + ORDER.length) % ORDER.length;

export const nodeKey = (node: { tenant: string; cluster_id: string; agent_id: string }) =>
  `${node.tenant}\u0001${node.cluster_id}\u0001${node.agent_id}`;

export function fleetMap(topology: Topology, room: number): FleetMap {
  const urgent = [...topology.nodes].sort(
    (a, b) => urgency(a.state) - urgency(b.state) || b.steps - a.steps || (nodeKey(a) < nodeKey(b) ? -1 : 1),
  );
  const drawn = urgent.slice(0, MAX_BOXES);
  const ends = (edge: TopologyEdge) => ({
    from: nodeKey({ ...edge, agent_id: edge.from }),
    to: nodeKey({ ...edge, agent_id: edge.to }),
  });
  const spacing = { ...BOX, gapX: 88, gapY: 30, columns: Math.max(1, Math.floor((room + 44) / (BOX.width + 44))) };
  const layout = layered(drawn.map(nodeKey), topology.edges.map(ends), spacing);
  const boxes = drawn.map((node) => {
    const { x, y } = layout.nodes.get(nodeKey(node)) ?? { x: 0, y: 0 };
    return { key: nodeKey(node), node, x, y };
  });
  const goesRound = rounds(topology.edges.filter((edge) => edge.loop).map(ends));
  let lowest = layout.height;
  const curves: Curve[] = [];
  for (const edge of topology.edges) {
    const { from, to } = ends(edge);
    const [a, b] = [layout.nodes.get(from), layout.nodes.get(to)];
    if (!a || !b || from === to) continue;
    const isBack = layout.back.has(linkId({ from, to }));
    // The API says that its session loops; who handed over once and got nothing back has no part in it.
    const loops = edge.loop && goesRound({ from, to });
    const width = 1.2 + Math.min(3.2, Math.log2(1 + edge.count) * 0.38);
    const { path, x, y, low } = isBack || b.x <= a.x ? returning(a, b) : going(a, b);
    lowest = Math.max(lowest, low);
    curves.push({ key: linkId({ from, to }), edge, path, x, y, loops, width });
  }
  return { boxes, curves, width: layout.width, height: lowest, left: topology.nodes.length - drawn.length };
}

/** Whether a link is part of a circle of these links. */
function rounds(links: readonly Link[]): (link: Link) => boolean {
  const next = new Map<string, string[]>();
  for (const { from, to } of links) next.set(from, [...(next.get(from) ?? []), to]);
  const reached = new Map<string, Set<string>>();
  const reach = (start: string) => {
    const known = reached.get(start);
    if (known) return known;
    const seen = new Set([start]);
    // A set that grows while it is walked is walked to its new end.
    for (const id of seen) for (const to of next.get(id) ?? []) seen.add(to);
    reached.set(start, seen);
    return seen;
  };
  return ({ from, to }) => reach(to).has(from);
}

interface Point {
  x: number;
  y: number;
}

/** From the right side of one to the left side of the other. */
function going(a: Point, b: Point) {
  const [x1, y1, x2, y2] = [a.x + BOX.width, a.y + BOX.height * 0.42, b.x - 5, b.y + BOX.height * 0.42];
  const bend = Math.max(36, (x2 - x1) / 2);
  const path = `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  return { path, x: (x1 + x2) / 2, y: (y1 + y2) / 2 - 7, low: 0 };
}

/** Back under the boxes, from the bottom of one to the bottom of the other. */
function returning(a: Point, b: Point) {
  const [x1, x2] = [a.x + BOX.width * 0.42, b.x + BOX.width * 0.58];
  const [y1, y2] = [a.y + BOX.height, b.y + BOX.height + 5];
  const depth = 34 + Math.min(46, Math.abs(x1 - x2) * 0.06);
  const low = Math.max(y1, y2) + depth;
  const path = `M${x1} ${y1}C${x1} ${low} ${x2} ${low} ${x2} ${y2}`;
  return { path, x: (x1 + x2) / 2, y: (y1 + y2) / 2 + depth * 0.75 + 15, low: low + 10 };
}
