import { invariant } from '../contracts/errors.ts';
import type { Rng } from '../lib/rng.ts';
import { sample, sampleAboveZero } from './distribution.ts';
import { nodeLuck } from './node-luck.ts';
import type { ClusterScenario, NodeGroup } from './cluster-scenario.ts';
import type { Meeting, SimStage } from './sim-job.ts';

/** What a node does with its speed while it runs something. */
export interface NodeLoad {
  /** Brings its work up to the present, at the speed until now. */
  settle(): void;
  /** Works on at the node's present speed. */
  resume(): void;
  /** The node is gone. */
  die(): void | Promise<void>;
}

/** A machine, and what is busy on all its nodes. */
export interface SimHost {
  readonly index: number;
  readonly nodes: SimNode[];
  /** What its disk carries for one stream, for two, and so on, in bytes per second; undefined where it has none. */
  readonly diskBytesPerS: readonly number[] | undefined;
  busy: number;
}

/** A machine, a part of one, or an execution environment. */
export interface SimNode {
  readonly index: number;
  readonly host: SimHost;
  readonly group: NodeGroup;
  readonly zone: number;
  readonly rng: Rng;
  name: string;
  busy: number;
  isUp: boolean;
  /** Speed of the present environment, and by how much a spell slows it. */
  baseSpeed: number;
  spellSlowdown: number;
  /** An elastic node is cold before its first use and after this time. */
  warmUntil: number;
  generation: number;
  /** Place among the nodes with a free slot; -1 for none. */
  freePlace: number;
  readonly loads: Set<NodeLoad>;
  /** Stages of which an attempt has started in the present environment. */
  readonly begun: Set<SimStage>;
}

/** What is asked of a slot. */
export interface WantedSlot {
  /** What its place is drawn with, where that is drawn: the attempt's own. */
  readonly luck: Rng;
  /** Nodes on which it must not be. */
  readonly avoid?: ReadonlySet<string>;
  /** Where it had best be. */
  readonly zone?: string | undefined;
  /** Whether it has to be a node that nothing has run on, where nodes are elastic: a task on Fargate. */
  readonly isFresh?: boolean;
}

/** A slot of a node, taken; `isCold`: the environment has to be started first. */
export interface TakenSlot {
  readonly node: SimNode;
  readonly isCold: boolean;
}

/** The smallest speed: a node never stands still for good. */
const leastSpeed = 1e-6;

/** The slowest disk, in bytes per second: however it was drawn, what is read ends. */
const slowestDisk = 1_000;

/** As many draws miss the free nodes by chance only where few are free. */
const mostDraws = 64;

/** Nodes and their slots. */
export class NodePool {
  readonly nodes: readonly SimNode[];
  readonly hosts: readonly SimHost[];
  readonly totalSlots: number;
  /** Whether nodes are known before they are used. */
  readonly isFixed: boolean;
  private readonly cluster: ClusterScenario;
  private readonly free: SimNode[] = [];
  private readonly freeByName = new Map<string, number>();
  private busySlots = 0;
  private downSlots = 0;

  constructor(cluster: ClusterScenario, rng: Rng) {
    this.cluster = cluster;
    const zones = new Map(cluster.zones.map(({ name }, index) => [name, index]));
    const nodes: SimNode[] = [];
    const hosts: SimHost[] = [];
    for (const group of cluster.nodes) {
      let host = newHost(group, hosts.length, rng);
      for (let place = 0; place < group.count; place++) {
        if (place % group.perHost === 0) hosts.push((host = newHost(group, hosts.length, rng)));
        const index = nodes.length;
        const zone = group.zone === undefined ? index % cluster.zones.length : (zones.get(group.zone) ?? 0);
        const node = newNode(group, { index, zone, host }, rng.fork(`node-${index}`));
        host.nodes.push(node);
        nodes.push(node);
      }
    }
    this.nodes = nodes;
    this.hosts = hosts;
    this.totalSlots = nodes.reduce((sum, { group }) => sum + group.slots, 0);
    this.isFixed = cluster.nodes.every(({ elastic }) => !elastic);
    // The warmest is taken from the end: the first nodes come first also before any is warm.
    for (const node of cluster.placement === 'warmest' ? nodes.toReversed() : nodes) {
      this.addFree(node);
      this.noteFree(node);
    }
  }

  get freeSlots(): number {
    return this.totalSlots - this.busySlots - this.downSlots;
  }

  /** Takes a slot on a node that is not to be avoided, in a zone where that has one; undefined where there is none now. */
  take(wanted: WantedSlot, now: number): TakenSlot | undefined {
    const { avoid, zone, isFresh = false } = wanted;
    const becomesNew = (each: SimNode): boolean => isFresh && each.group.elastic;
    const allows = (each: SimNode): boolean =>
      becomesNew(each) ? each.busy === 0 : isCold(each, now) || avoid?.has(each.name) !== true;
    const place = zone === undefined ? -1 : this.cluster.zones.findIndex(({ name }) => name === zone);
    const there = place < 0 ? undefined : this.choose((each) => each.zone === place && allows(each), wanted);
    const node = there ?? this.choose(allows, wanted);
    if (node === undefined) return undefined;
    const cold = becomesNew(node) || isCold(node, now);
    if (cold) {
      this.freeByName.delete(node.name);
      node.generation += 1;
      node.begun.clear();
      node.name = nodeName(node.index, node.generation);
      node.baseSpeed = speedOf(node.group, node.rng);
    }
    this.changeLoad(node, 1);
    this.busySlots += 1;
    if (node.busy === node.group.slots) this.removeFree(node);
    return { node, isCold: cold };
  }

  /** Whether an attempt that came now could have a warm node; where all are busy, the next that becomes free is. */
  hasWarm(now: number): boolean {
    return this.free.length === 0 || this.free.findLast((node) => !isCold(node, now)) !== undefined;
  }

  /** Gives a slot back; the node stays warm until `warmUntil`. */
  release(node: SimNode, warmUntil: number): void {
    invariant(node.busy > 0, 'a slot was given back twice', { node: node.name });
    this.changeLoad(node, -1);
    this.busySlots -= 1;
    node.warmUntil = warmUntil;
    if (!node.isUp) this.downSlots += 1;
    else if (node.freePlace < 0) this.addFree(node);
  }

  /** Changes what slows a node; its loads go on at the new speed. */
  setSpell(node: SimNode, slowdown: number): void {
    this.changeSpeed(node, () => {
      node.spellSlowdown = slowdown;
    });
  }

  /** Draws a node another speed, at which its loads go on. */
  redrawSpeed(node: SimNode): void {
    this.changeSpeed(node, () => {
      node.baseSpeed = speedOf(node.group, node.rng);
    });
  }

  private changeSpeed(node: SimNode, change: () => void): void {
    this.changing(this.cluster.cores === undefined ? [node] : this.nodes, change);
  }

  /** Makes a change by which these nodes become slower or faster: what they have done until then counts as it was. */
  private changing(nodes: readonly SimNode[], change: () => void): void {
    for (const { loads } of nodes) for (const load of loads) load.settle();
    change();
    for (const { loads } of nodes) for (const load of loads) load.resume();
  }

  /** Nodes that are slower or faster as soon as one more slot, or one less, of a node is busy. */
  private sharersOf(node: SimNode): readonly SimNode[] {
    if (this.cluster.cores !== undefined) return this.nodes;
    return this.contentionOf(node) > 0 ? node.host.nodes : [];
  }

  /** Takes a node out of service or puts it back. A slot counts as down once nothing runs in it. */
  setUp(node: SimNode, isUp: boolean): void {
    if (node.isUp === isUp) return;
    node.isUp = isUp;
    const idle = node.group.slots - node.busy;
    this.downSlots += isUp ? -idle : idle;
    if (!isUp) this.removeFree(node);
    else if (idle > 0) this.addFree(node);
    this.noteFree(node);
  }

  /** Work per millisecond that one busy slot of a node does now. */
  speedOf(node: SimNode): number {
    const others = Math.max(0, node.host.busy - 1);
    const slowdown = (1 + this.contentionOf(node) * others) * node.spellSlowdown;
    return Math.max(leastSpeed, node.baseSpeed / slowdown / this.coreShortage());
  }

  /** How many times as many cores busy slots would use as there are; 1 where they have enough. */
  private coreShortage(): number {
    const { cores } = this.cluster;
    if (cores === undefined) return 1;
    let wanted = 0;
    for (const { busy, baseSpeed, spellSlowdown } of this.nodes)
      wanted += busy * Math.min(1, baseSpeed / spellSlowdown);
    return Math.max(1, wanted / cores);
  }

  /** What an attempt of a stage meets on a node where it starts now. */
  meet({ group, rng, generation, begun }: SimNode, stage: SimStage, now: number): Meeting {
    const isFirst = !begun.has(stage);
    begun.add(stage);
    return { luck: group.luck && nodeLuck(group.luck, rng, generation, now), isFirst };
  }

  /** Free slots of each node that has any, by its name: as they are now, and as they change. */
  get freeSlotsByNode(): ReadonlyMap<string, number> {
    return this.freeByName;
  }

  private noteFree(node: SimNode): void {
    const slots = node.isUp ? node.group.slots - node.busy : 0;
    if (slots > 0) this.freeByName.set(node.name, slots);
    else this.freeByName.delete(node.name);
  }

  private changeLoad(node: SimNode, by: 1 | -1): void {
    this.changing(this.sharersOf(node), () => {
      node.busy += by;
      node.host.busy += by;
      this.noteFree(node);
      invariant(node.busy <= node.group.slots, 'more attempts than slots', {
        node: node.name,
        busy: node.busy,
      });
    });
  }

  private contentionOf({ group }: SimNode): number {
    return group.contention ?? this.cluster.contention;
  }

  /** `isFresh`: warm nodes are left to others, if there are others. */
  private choose(
    allows: (node: SimNode) => boolean,
    { luck, isFresh = false }: WantedSlot,
  ): SimNode | undefined {
    const { placement } = this.cluster;
    if (placement === 'warmest') return isFresh ? this.free.find(allows) : this.free.findLast(allows);
    if (placement === 'random') return this.draw(allows, luck);
    if (placement === 'spread') return this.leastBusy(allows, luck);
    return this.free.reduce<SimNode | undefined>(
      (first, node) => (allows(node) && (first === undefined || node.index < first.index) ? node : first),
      undefined,
    );
  }

  /**
   * The first free node that is allowed, of all nodes in an order of the attempt's own: so it comes to the same machine under
   * every policy that leaves it free, whatever else is free, and whatever others have taken before.
   */
  private draw(allows: (node: SimNode) => boolean, luck: Rng): SimNode | undefined {
    if (this.free.length === 0) return undefined;
    const order = luck.fork('order');
    for (let draw = 0; draw < mostDraws; draw++) {
      const node = this.nodes[Math.floor(order.next() * this.nodes.length)];
      if (node !== undefined && node.freePlace >= 0 && allows(node)) return node;
    }
    const rank = (node: SimNode): number => luck.fork(String(node.index)).next();
    const ranked = this.free.filter(allows).map((node) => ({ node, rank: rank(node) }));
    return ranked.reduce<(typeof ranked)[number] | undefined>(
      (first, each) => (first === undefined || each.rank < first.rank ? each : first),
      undefined,
    )?.node;
  }

  private leastBusy(allows: (node: SimNode) => boolean, luck: Rng): SimNode | undefined {
    let least = Infinity;
    for (const node of this.free) if (node.busy < least && allows(node)) least = node.busy;
    return this.draw((node) => node.busy === least && allows(node), luck);
  }

  private addFree(node: SimNode): void {
    node.freePlace = this.free.length;
    this.free.push(node);
  }

  private removeFree(node: SimNode): void {
    if (node.freePlace < 0) return;
    if (this.cluster.placement === 'warmest') {
      this.free.splice(node.freePlace, 1); // The order tells which was used last.
      for (let place = node.freePlace; place < this.free.length; place++) {
        const moved = this.free[place];
        if (moved !== undefined) moved.freePlace = place;
      }
    } else {
      const last = this.free.pop();
      if (last !== undefined && last !== node) {
        this.free[node.freePlace] = last;
        last.freePlace = node.freePlace;
      }
    }
    node.freePlace = -1;
  }
}

const nodeName = (index: number, generation: number): string =>
  generation === 0 ? `node-${index}` : `node-${index}-${generation}`;

const isCold = (node: SimNode, now: number): boolean =>
  node.group.elastic && node.busy === 0 && now > node.warmUntil;

const speedOf = (group: NodeGroup, rng: Rng): number =>
  Math.max(leastSpeed, sampleAboveZero(group.speed, rng));

function newHost({ disk }: NodeGroup, index: number, rng: Rng): SimHost {
  const bytesPerS = disk === undefined ? 0 : sample(disk.bytesPerS, rng.fork(`disk-${index}`));
  const alone = Math.max(slowestDisk, bytesPerS);
  return {
    index,
    nodes: [],
    busy: 0,
    diskBytesPerS: disk === undefined ? undefined : [1, ...disk.shares].map((share) => share * alone),
  };
}

function newNode(group: NodeGroup, place: Pick<SimNode, 'index' | 'zone' | 'host'>, rng: Rng): SimNode {
  const { index } = place;
  return {
    ...place,
    group,
    rng,
    name: nodeName(index, 0),
    busy: 0,
    isUp: true,
    baseSpeed: speedOf(group, rng),
    spellSlowdown: 1,
    warmUntil: group.elastic ? -1 : Infinity,
    generation: 0,
    freePlace: -1,
    loads: new Set(),
    begun: new Set(),
  };
}
