import { ascending, quantile } from '../../lib/quantiles.ts';
import { type PaceHost, systemPaceHost } from './read-pace.ts';

/** No request is slow that takes less, so that where all is well nothing is asked for twice. */
const leastLateMs = 1_000;
/** A request is late after so many times what it should take. */
const lateFactor = 3;
/** What S3 takes to answer, and for a byte, at least: what is taken for usual until enough has been seen. */
const usualLatencyMs = 100;
const usualMsPerByte = 1_000 / (10 * 1024 * 1024);
/** Samples that are kept, and bytes of a request that tells anything of throughput. */
const samplesKept = 64;
const leastBytes = 256 * 1024;
/** Second requests of one read or part, and of all: so many, and a twentieth of the first ones. */
const hedgesOfOne = 3;
const firstHedges = 4;
const hedgedShare = 1 / 20;

function keep(samples: number[], sample: number): void {
  samples.push(sample);
  if (samples.length > samplesKept) samples.shift();
}

/**
 * When a request is slow enough to be made a second time: after what its kind, a read or a part that is sent, usually takes,
 * latency + bytes over throughput as this process has seen them, some times over. All second requests together are bounded,
 * since a service that is slow for all is not made faster by being asked twice.
 *
 * Source: Starling (SIGMOD 2020) §4.3, read straggler mitigation and double writes. The bound is ours.
 */
export class RequestHedge {
  private readonly host: PaceHost;
  private readonly latenciesMs: number[] = [];
  private readonly rates: number[] = [];
  private latencyMs = usualLatencyMs;
  private msPerByte = usualMsPerByte;
  private requests = 0;
  private hedges = 0;

  constructor(host: PaceHost = systemPaceHost) {
    this.host = host;
  }

  now(): number {
    return this.host.now();
  }

  /** Ends after so long, or early where the signal fires. */
  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return this.host.sleep(ms, signal);
  }

  /** How long may be waited for the first `bytes` of a request; for none of them: for its answer. */
  lateAfterMs(bytes: number): number {
    return Math.max(leastLateMs, lateFactor * (this.latencyMs + bytes * this.msPerByte));
  }

  /** A request was made. */
  began(): void {
    this.requests += 1;
  }

  /** What a request was waited for: until its first bytes, and for as many after them. */
  ended(latencyMs: number, bytes: number, restMs: number): void {
    keep(this.latenciesMs, latencyMs);
    this.latencyMs = Math.max(usualLatencyMs, quantile(ascending(this.latenciesMs), 0.9) ?? 0);
    if (bytes < leastBytes) return;
    keep(this.rates, restMs / bytes);
    this.msPerByte = Math.max(usualMsPerByte, quantile(ascending(this.rates), 0.5) ?? 0);
  }

  /** Whether a read or part that has had so many second requests may have another; counts it where it may. */
  take(before: number): boolean {
    if (before >= hedgesOfOne || this.hedges >= firstHedges + hedgedShare * this.requests) return false;
    this.hedges += 1;
    return true;
  }
}
