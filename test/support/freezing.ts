/** Where a process stops: at its call number `call` (from 1), before that takes effect or with its answer on the way. */
export interface FreezePoint {
  readonly call: number;
  readonly when: 'before' | 'after';
}

type Method = (...args: readonly unknown[]) => unknown;

/** Methods of the ledger that tell what the process itself has in mind: they are no calls. */
const answersAtOnce: ReadonlySet<string | symbol> = new Set(['admitted', 'isAnyOwed']);

const isMethod = (value: unknown): value is Method => typeof value === 'function';
const isStream = (method: Method): boolean => method.constructor.name === 'AsyncGeneratorFunction';

/**
 * A process that freezes at one of its calls to the ports, whatever it was about to do, and goes on when it is thawed.
 * While it is frozen nothing of it goes on, neither calls in flight beside that one nor later ones. A method that
 * answers a stream counts as one call, which ends with the stream.
 */
export class FreezingProcess {
  /** Resolves with the name of the call, such as `objects.write`, once the process has frozen. */
  readonly frozen: Promise<string>;
  private readonly point: FreezePoint;
  private readonly thawed: Promise<void>;
  private calls = 0;
  private isFrozen = false;
  private onFrozen: (name: string) => void = () => undefined;
  private onThaw: () => void = () => undefined;

  constructor(point: FreezePoint) {
    this.point = point;
    this.frozen = new Promise((resolve) => {
      this.onFrozen = resolve;
    });
    this.thawed = new Promise((resolve) => {
      this.onThaw = resolve;
    });
  }

  thaw(): void {
    this.isFrozen = false;
    this.onThaw();
  }

  /** The ports as the process sees them. Those not named are passed through. */
  wrap<Ports extends object>(ports: Ports, names: readonly (keyof Ports & string)[]): Ports {
    const wrapped = names.map((name) => [name, this.port(name, ports[name])] as const);
    return { ...ports, ...Object.fromEntries(wrapped) };
  }

  private port(name: string, port: unknown): unknown {
    if (typeof port !== 'object' || port === null) return port;
    return new Proxy(port, {
      get: (target, property) => {
        const method: unknown = Reflect.get(target, property, target);
        if (!isMethod(method)) return method;
        if (answersAtOnce.has(property)) return method.bind(target);
        const call = (args: readonly unknown[]): unknown => method.apply(target, [...args]);
        const label = `${name}.${String(property)}`;
        return isStream(method)
          ? (...args: readonly unknown[]) => this.stream(label, () => call(args) as AsyncIterable<unknown>)
          : (...args: readonly unknown[]) => this.call(label, () => call(args));
      },
    });
  }

  private async call(name: string, run: () => unknown): Promise<unknown> {
    const isHere = await this.enter(name);
    try {
      return await run();
    } finally {
      await this.leave(name, isHere);
    }
  }

  private async *stream(name: string, run: () => AsyncIterable<unknown>): AsyncGenerator {
    const isHere = await this.enter(name);
    yield* run();
    await this.leave(name, isHere);
  }

  /** Whether the call is the one to freeze at. */
  private async enter(name: string): Promise<boolean> {
    if (this.isFrozen) await this.thawed;
    const isHere = ++this.calls === this.point.call;
    if (isHere && this.point.when === 'before') await this.freeze(name);
    return isHere;
  }

  private async leave(name: string, isHere: boolean): Promise<void> {
    if (isHere && this.point.when === 'after') await this.freeze(name);
    else if (this.isFrozen) await this.thawed;
  }

  private async freeze(name: string): Promise<void> {
    this.isFrozen = true;
    this.onFrozen(name);
    await this.thawed;
  }
}

/** One process that freezes, and what happens meanwhile. */
export interface FreezeScenario<World> {
  /** A fresh world for each freeze. */
  readonly make: () => Promise<World>;
  /** What the process does, with the world's ports as `process.wrap` gives them. It may fail. */
  readonly run: (world: World, process: FreezingProcess) => Promise<unknown>;
  /** What goes on while it is frozen, from beginning to end. May fail as well. */
  readonly meanwhile: (world: World) => Promise<unknown>;
  /** Whether the frozen process goes on later, or was killed where it stood. */
  readonly fate: 'thaws' | 'dies';
  /** Looks at what is left. `where` is for messages. */
  readonly check: (world: World, where: string) => Promise<void>;
}

/** More calls than any step makes in a test: a scenario that does not end is a fault of its own. */
const mostCalls = 400;

/**
 * Freezes a process at each of its calls in turn, before and after, until it runs through without reaching the next.
 * Answers where it froze, so that a test can tell that it has looked everywhere.
 */
export async function freezeEverywhere<World>(scenario: FreezeScenario<World>): Promise<readonly string[]> {
  const places: string[] = [];
  for (let call = 1; call <= mostCalls; call++) {
    for (const when of ['before', 'after'] as const) {
      const name = await freezeOnce(scenario, { call, when });
      if (name === undefined) return places;
      places.push(`${when} ${name}`);
    }
  }
  throw new Error(`the process made more than ${String(mostCalls)} calls`);
}

/** Answers the name of the call at which the process froze, or undefined where it ended before. */
async function freezeOnce<World>(
  { make, run, meanwhile, fate, check }: FreezeScenario<World>,
  point: FreezePoint,
): Promise<string | undefined> {
  const world = await make();
  const process = new FreezingProcess(point);
  const running = run(world, process).then(
    () => undefined,
    () => undefined,
  );
  const name = await Promise.race([process.frozen, running]);
  if (name === undefined) return undefined;
  await meanwhile(world).catch(() => undefined);
  if (fate === 'thaws') {
    process.thaw();
    await running;
  }
  await check(world, `frozen ${point.when} call ${String(point.call)}, ${name}, which ${fate}`);
  return name;
}
