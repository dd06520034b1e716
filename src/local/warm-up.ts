import type { LocalDeployment } from './provision/deployment.ts';
import type { Services } from './provision/start-services.ts';

/** Functions of a job in the order in which it needs them, by the names that the templates give them. */
const neededFirst = [/^OutriderApi-Handler/, /^OutriderCoordinator-plan/, /^OutriderCoordinator-schedule/];
const usualWorker = /^OutriderCompute-Workermedium/;
const mostWarmWorkers = 2;
/** What a job needs when its last task is over, and nothing else is left to be waited for. */
const neededLast = /^OutriderCoordinator-finish/;

type Warmed = Pick<Services, 'lambda' | 'states'>;

/** Starts what a job that is sure to come will need, side by side, where it would start one thing after the other. */
export class WarmUp {
  private readonly names: readonly string[];
  private readonly slots: number;
  private services: Warmed | undefined;
  private hasBegun = false;

  constructor({ functions }: LocalDeployment, slots: number) {
    this.names = functions.map(({ name }) => name);
    this.slots = slots;
  }

  /** The services are there, and the job will be. */
  isExpected(services: Warmed): void {
    this.services = services;
    for (const name of this.firstNeeded()) services.lambda.warm(name);
    // In this process, while those start on other cores.
    services.states.prepare();
  }

  /** The first of the job's steps is over; may be said again. */
  beginsToRun(): void {
    if (this.hasBegun || this.services === undefined) return;
    this.hasBegun = true;
    for (const name of this.named(neededLast)) this.services.lambda.warm(name);
  }

  private firstNeeded(): readonly string[] {
    const workers = this.named(usualWorker).flatMap((name) =>
      Array.from({ length: Math.min(this.slots, mostWarmWorkers) }, () => name),
    );
    return [...neededFirst.flatMap((pattern) => this.named(pattern)), ...workers];
  }

  private named(pattern: RegExp): readonly string[] {
    return this.names.filter((name) => pattern.test(name));
  }
}
