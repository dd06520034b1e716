import type { Fetched } from '../contracts/progress.ts';
import type { EpochMs } from '../contracts/units.ts';
import type { Flow, FluidNetwork } from './fluid-network.ts';
import type { EndpointRead } from './upstream-reads.ts';

/** Bytes of one attempt that are under way, or were: its input from wherever it lies, its output to two places. */
export class AttemptTransfers {
  /** Of its input, what came over the network and disks; 0 until it is fetched, and where it is not. */
  remoteBytes = 0;
  private readonly network: FluidNetwork;
  private readonly now: () => EpochMs;
  private input: Flow[] = [];
  private output: Flow | undefined;
  private beganAt: EpochMs | undefined;
  private endedAt: EpochMs | undefined;

  constructor(network: FluidNetwork, now: () => EpochMs) {
    this.network = network;
    this.now = now;
  }

  /** Fetches its input, `sizeBytes` in all, of which `reads` come from elsewhere; calls `onEnd` when all is there. */
  fetch(
    reads: readonly EndpointRead[],
    here: number,
    sizeBytes: number,
    onEnd: Flow['onEnd'],
  ): ReturnType<Flow['onEnd']> {
    this.remoteBytes = sizeBytes;
    this.beganAt = this.now();
    const endOne: Flow['onEnd'] = () => {
      if (this.input.some(({ isOver }) => !isOver)) return undefined;
      this.endedAt = this.now();
      return onEnd();
    };
    this.input = reads.map((read) => this.network.start(read.endpoint, here, read.sizeBytes, endOne));
    return reads.length === 0 ? endOne() : undefined;
  }

  /** Writes its output here and there at once. */
  write(here: number, there: number, sizeBytes: number, onEnd: Flow['onEnd']): void {
    this.output = this.network.start(here, there, sizeBytes, onEnd);
  }

  stop(): void {
    for (const flow of this.flows()) this.network.stop(flow);
  }

  /** Whether its output is on its way: it works no more. */
  get isWriting(): boolean {
    return this.output !== undefined && !this.output.isOver;
  }

  /** Until all that is under way has arrived, as it goes now. */
  leftMs(): number {
    return this.flows().reduce((most, flow) => Math.max(most, this.network.leftMs(flow)), 0);
  }

  /** Share of the input that has arrived; 0 where none is under way. */
  shareFetched(): number {
    return this.remoteBytes === 0 || this.input.length === 0 ? 0 : 1 - this.leftBytes() / this.remoteBytes;
  }

  /** Share of the output that has been written; undefined before that begins. */
  shareWritten(): number | undefined {
    if (this.output === undefined) return undefined;
    return 1 - this.network.leftBytes(this.output) / this.output.sizeBytes;
  }

  /** What it has fetched; undefined until it has begun to. */
  fetched(): Fetched | undefined {
    if (this.beganAt === undefined) return undefined;
    return {
      bytes: Math.floor(this.remoteBytes - this.leftBytes()),
      ms: (this.endedAt ?? this.now()) - this.beganAt,
    };
  }

  private flows(): readonly Flow[] {
    return this.output === undefined ? this.input : [...this.input, this.output];
  }

  private leftBytes(): number {
    const left = this.input.reduce((sum, flow) => sum + this.network.leftBytes(flow), 0);
    return Math.min(this.remoteBytes, left); // Shares of the input may add up to a little more than it.
  }
}
