import type { JobId } from '../contracts/ids.ts';
import { type EpochMs, epochMs } from '../contracts/units.ts';
import type { Rng } from '../lib/rng.ts';
import { sampleMs } from './distribution.ts';
import type { EventQueue } from './event-queue.ts';
import type { NodePool, SimNode } from './node-pool.ts';
import type { LossScenario } from './cluster-scenario.ts';
import type { Scenario } from './scenario.ts';
import type { OutputCopy, SimJob, SimStage } from './sim-job.ts';

/** An output that lies somewhere. */
interface Lying {
  readonly jobId: JobId;
  readonly stage: SimStage;
  readonly task: number;
  readonly copy: OutputCopy;
}

/** A machine or a zone, and what lies there. */
interface Location {
  readonly name: string;
  readonly losses: LossScenario;
  /** When its spells begin, and how long they last: of this nothing else draws, so that all policies meet the same spells. */
  readonly spells: Rng;
  /** What becomes of outputs there, each drawn by what it is and by the spell. */
  readonly fates: Rng;
  readonly outputs: Set<Lying>;
  /** Spells so far. */
  count: number;
  /** When its present spell ends; undefined between spells. */
  spellEnds: EpochMs | undefined;
}

interface Parts {
  readonly scenario: Scenario;
  readonly queue: EventQueue;
  readonly now: () => EpochMs;
  readonly rng: Rng;
  readonly pool: NodePool;
  /** Whether faults go on. */
  readonly goOn: () => boolean;
}

/** An output is gone for good: whoever reads it next finds that out. */
export function loseCopy(stage: SimStage, copy: OutputCopy): void {
  if (copy.isGone) return;
  copy.isGone = true;
  stage.copiesGone += 1;
}

/**
 * What machines and zones lose of the outputs that lie on them. Losses cluster by place and in time: in a spell of its
 * own each place loses a share of what lies there when the spell begins, or is written there while it lasts, each output at
 * an even moment of what is left of it. Nobody is told.
 *
 * Source: Mantri §3 and §5.3: half of all recomputations on 5 % of machines; a machine that loses the output of a task
 * has a higher chance of losing those of others.
 */
export class OutputLosses {
  private readonly parts: Parts;
  private readonly hosts = new Map<number, Location>();
  private readonly zones = new Map<number, Location>();

  constructor(parts: Parts) {
    this.parts = parts;
    const rng = parts.rng.fork('losses');
    for (const { index, nodes } of parts.pool.hosts) {
      const losses = nodes[0]?.group.losses;
      if (losses !== undefined) this.hosts.set(index, this.place(`host-${index}`, losses, rng));
    }
    for (const [index, { name, losses }] of parts.scenario.cluster.zones.entries())
      if (losses !== undefined) this.zones.set(index, this.place(name, losses, rng));
  }

  /** An output was written by a worker on a node. */
  add({ id: jobId }: SimJob, stage: SimStage, task: number, copy: OutputCopy, { host, zone }: SimNode): void {
    for (const location of [this.hosts.get(host.index), this.zones.get(zone)]) {
      if (location === undefined) continue;
      const output = { jobId, stage, task, copy };
      location.outputs.add(output);
      this.threaten(location, output);
    }
  }

  /** A job has ended, and its outputs are removed. */
  forget(jobId: JobId): void {
    for (const { outputs } of [...this.hosts.values(), ...this.zones.values()])
      for (const output of outputs) if (output.jobId === jobId) outputs.delete(output);
  }

  private place(name: string, losses: LossScenario, rng: Rng): Location {
    const location: Location = {
      name,
      losses,
      spells: rng.fork(name),
      fates: rng.fork(`${name}/fates`),
      outputs: new Set(),
      count: 0,
      spellEnds: undefined,
    };
    this.waitForSpell(location);
    return location;
  }

  private waitForSpell(location: Location): void {
    const { name, losses, spells, outputs } = location;
    this.after(sampleMs(losses.everyMs, spells), name, () => {
      if (!this.parts.goOn()) return;
      const lastsMs = Math.max(1, sampleMs(losses.lastsMs, spells));
      location.count += 1;
      location.spellEnds = epochMs(this.parts.now() + lastsMs);
      for (const output of outputs) this.threaten(location, output);
      this.after(lastsMs, name, () => {
        location.spellEnds = undefined;
        this.waitForSpell(location);
      });
    });
  }

  /** In a spell, decides whether an output will go, and when. */
  private threaten({ name, losses, fates, count, outputs, spellEnds }: Location, output: Lying): void {
    if (spellEnds === undefined) return;
    const { jobId, stage, task, copy } = output;
    const rng = fates.fork(`${count}/${jobId}/${stage.index}/${task}/${copy.attempt}`);
    if (rng.next() >= losses.share) return;
    const leftMs = Math.max(0, spellEnds - this.parts.now());
    this.after(Math.floor(rng.next() * leftMs), `${name} ${stage.scenario.name}`, () => {
      if (outputs.delete(output)) loseCopy(stage, copy);
    });
  }

  private after(waitMs: number, subject: string, run: () => void): void {
    const at = epochMs(this.parts.now() + Math.max(1, waitMs));
    this.parts.queue.schedule(at, { kind: 'loss', subject, run });
  }
}
