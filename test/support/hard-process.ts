import { StoreUnavailableError } from '../../src/contracts/errors.ts';
import { type DurationMs, durationMs, epochMs } from '../../src/contracts/units.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { LaunchRequest } from '../../src/ports/launcher.ts';

/**
 * What befalls a process at one of its calls to the ports.
 *
 * - `freeze-before`, `freeze-after`: nothing of it goes on for `ms`, from before the call takes effect, or from when its
 *   answer is on the way.
 * - `dies`: so for ever, before the call.
 * - `slow`: the call takes effect after `ms`, and is answered then.
 * - `late`: it is told at once that the call failed, which takes effect after `ms`.
 * - `twin`: what was repeated takes effect at once, and the first try once more after `ms`.
 * - `repeated`: the answer is lost, and the repetition is answered.
 * - `lost`: it takes effect, and is told to have failed. `failed`: it truly failed.
 */
export const illKinds = [
  'freeze-before',
  'freeze-after',
  'dies',
  'slow',
  'late',
  'twin',
  'repeated',
  'lost',
  'failed',
] as const;

export interface Ill {
  readonly kind: (typeof illKinds)[number];
  /** From 1. */
  readonly call: number;
  readonly ms: number;
}

type Method = (...args: readonly unknown[]) => unknown;

const isMethod = (value: unknown): value is Method => typeof value === 'function';
const streams = new Set(['objects.read', 'objects.list', 'objects.listUploads', 'decisions.read']);
/** Answers at once, and asks nobody. */
const local = new Set(['launcher.terms', 'ledger.admitted']);
const never = new Promise<never>(() => undefined);

/** What a caller is told whose call did not go through, as far as it can know. */
function refusal(name: string, args: readonly unknown[]): unknown {
  if (name === 'launcher.stop') return undefined;
  if (name !== 'launcher.launch') throw new StoreUnavailableError(`${name} timed out`);
  return (args[0] as readonly LaunchRequest[]).map(({ payload: { attemptId } }) => ({
    ...{ attemptId, outcome: 'throttled' as const, message: 'it timed out' },
  }));
}

/** A process with a clock of its own, whose calls to the ports are numbered, and to which ills happen at some of them. */
export class HardProcess {
  readonly clock: Clock;
  /** What it has called, in order. */
  readonly places: string[] = [];
  /** Resolves once it is dead. */
  readonly died: Promise<void>;
  isDead = false;
  /** Waited for at each call, before it takes effect: what others do just then. */
  onCall: (place: string, call: number) => Promise<void> = () => Promise.resolve();
  /** How long it was frozen altogether, and how many ills have happened to it. */
  frozenMs = 0;
  suffered = 0;
  private readonly base: Clock;
  private readonly ills: ReadonlyMap<number, Ill>;
  private thawed: Promise<unknown> = Promise.resolve();
  /** Freezes that go on: one may begin while another does. */
  private freezes = 0;
  private onDeath: () => void = () => undefined;

  constructor(base: Clock, ills: readonly Ill[] = [], offMs = 0) {
    this.base = base;
    this.ills = new Map(ills.map((ill) => [ill.call, ill]));
    this.died = new Promise((resolve) => {
      this.onDeath = resolve;
    });
    this.clock = {
      now: () => epochMs(base.now() + offMs),
      sleep: async (length: DurationMs, signal?: AbortSignal) => {
        await base.sleep(length, signal);
        await this.awake();
      },
    };
  }

  /** The ports as the process sees them. Those not named are passed through. */
  wrap<Ports extends object>(ports: Ports, names: readonly (keyof Ports & string)[]): Ports {
    const wrapped = names.map((name) => [name, this.port(name, ports[name])] as const);
    return { ...ports, clock: this.clock, ...Object.fromEntries(wrapped) };
  }

  private port(name: string, port: unknown): unknown {
    if (typeof port !== 'object' || port === null) return port;
    return new Proxy(port, {
      get: (target, property) => {
        const method: unknown = Reflect.get(target, property, target);
        const label = `${name}.${String(property)}`;
        if (!isMethod(method)) return method;
        const call = (args: readonly unknown[]): unknown => method.apply(target, [...args]);
        if (local.has(label)) return (...args: readonly unknown[]) => call(args);
        return streams.has(label)
          ? (...args: readonly unknown[]) => this.stream(label, () => call(args) as AsyncIterable<unknown>)
          : (...args: readonly unknown[]) => this.call(label, args, () => call(args));
      },
    });
  }

  private async call(name: string, args: readonly unknown[], run: () => unknown): Promise<unknown> {
    const ill = await this.enter(name);
    try {
      return await this.suffer(ill, { name, args, run });
    } finally {
      if (ill?.kind === 'freeze-after') this.freeze(ill.ms);
      await this.awake();
    }
  }

  private async suffer(
    ill: Ill | undefined,
    { name, args, run }: { readonly name: string; readonly args: readonly unknown[]; readonly run: Method },
  ): Promise<unknown> {
    const later = async (ms: number): Promise<unknown> => {
      await this.base.sleep(durationMs(ms));
      return run();
    };
    switch (ill?.kind) {
      case 'slow':
        return later(ill.ms);
      case 'late':
        later(ill.ms).catch(() => undefined);
        return refusal(name, args);
      case 'twin':
        later(ill.ms).catch(() => undefined);
        return run();
      case 'repeated':
        await run();
        return run();
      case 'lost':
        await run();
        return refusal(name, args);
      case 'failed':
        return refusal(name, args);
      default:
        return run();
    }
  }

  /** One call, which ends with the stream. What happens to writes happens to no stream: it is read. */
  private async *stream(name: string, run: () => AsyncIterable<unknown>): AsyncGenerator {
    const ill = await this.enter(name);
    if (ill?.kind === 'slow') await this.clock.sleep(durationMs(ill.ms));
    if (ill?.kind === 'failed' || ill?.kind === 'lost' || ill?.kind === 'late') refusal(name, []);
    yield* run();
    if (ill?.kind === 'freeze-after') this.freeze(ill.ms);
    await this.awake();
  }

  private async enter(name: string): Promise<Ill | undefined> {
    await this.awake();
    this.places.push(name);
    await this.onCall(name, this.places.length);
    const ill = this.ills.get(this.places.length);
    if (ill !== undefined) this.suffered += 1;
    if (ill?.kind === 'dies') {
      this.isDead = true;
      this.onDeath();
    }
    if (ill?.kind === 'freeze-before') this.freeze(ill.ms);
    await this.awake();
    return ill;
  }

  private freeze(ms: number): void {
    this.freezes += 1;
    this.frozenMs += ms;
    const ended = this.base.sleep(durationMs(ms)).then(() => {
      this.freezes -= 1;
    });
    this.thawed = Promise.all([this.thawed, ended]);
  }

  private async awake(): Promise<void> {
    if (this.isDead) await never;
    while (this.freezes > 0) await this.thawed;
  }
}
