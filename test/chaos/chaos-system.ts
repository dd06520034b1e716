import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { GetExecutionHistoryCommand, SFNClient, StopExecutionCommand } from '@aws-sdk/client-sfn';
import { OutputName, ParameterName } from '../../src/contracts/settings.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { stepFunctions } from './assembly.ts';
import { BegunUploads } from './begun-uploads.ts';
import type { Draw } from './draw.ts';
import {
  type Fault,
  type FaultProxy,
  type ProxiedService,
  startFaultProxy,
  type Subject,
} from './fault-proxy.ts';
import type { Step } from './job-case.ts';
import { RandomFaults } from './random-faults.ts';
import { Strangers } from './strangers.ts';

/** Short, so that what dies or freezes is noticed soon; an attempt may take long to start on a busy machine. */
const times = {
  [ParameterName.tickMs]: '100',
  [ParameterName.heartbeatMs]: '300',
  [ParameterName.leaseMs]: '1500',
  [ParameterName.claimLeaseMs]: '8000',
};
export const leaseMs = 1_500;
/** Attempts of all jobs that may run at once. */
export const slots = 6;
/** A bucket of the user's, which holds outputs and nothing of the system's own. */
export const apartBucket = 'outrider-chaos-results';

const variables: Readonly<Record<ProxiedService, string>> = {
  dynamodb: 'AWS_ENDPOINT_URL_DYNAMODB',
  s3: 'AWS_ENDPOINT_URL_S3',
  lambda: 'AWS_ENDPOINT_URL_LAMBDA',
  ecs: 'AWS_ENDPOINT_URL_ECS',
};

/** Asked about each request before chance is: the first answer counts. */
export type Trap = (subject: Subject) => Fault | undefined;

/** An embedded stack between whose parts requests get lost, and that strangers share. */
export class ChaosSystem {
  readonly system: EmbeddedSystem;
  readonly strangers: Strangers;
  readonly faults: RandomFaults;
  readonly traps = new Set<Trap>();
  readonly uploads = new BegunUploads();
  readonly #lambda: LambdaClient;
  readonly #states: SFNClient;
  readonly #steps: ReadonlyMap<string, string>;
  readonly #proxies: FaultProxy[] = [];

  private constructor(system: EmbeddedSystem, faults: RandomFaults, steps: ReadonlyMap<string, string>) {
    this.system = system;
    this.faults = faults;
    this.#steps = steps;
    const { region, credentials, environment } = system.stack;
    const client = (name: string) => ({ region, credentials, endpoint: environment[name] ?? '' });
    this.#lambda = new LambdaClient({ ...client('AWS_ENDPOINT_URL_LAMBDA'), maxAttempts: 1 });
    this.#states = new SFNClient(client('AWS_ENDPOINT_URL_SFN'));
    this.strangers = new Strangers(new S3Client({ ...client('AWS_ENDPOINT_URL_S3'), forcePathStyle: true }));
  }

  static async start(draw: Draw, assemblyDir: string): Promise<ChaosSystem> {
    const faults = new RandomFaults(draw, leaseMs);
    const hosts = new Set<string>();
    const system = await EmbeddedSystem.start({
      slots,
      parameters: times,
      onRequest: faults.onRequest,
      hosts,
      assemblyDir,
    });
    try {
      const chaos = new ChaosSystem(system, faults, await stepFunctions(assemblyDir));
      await chaos.#makeBucket();
      await chaos.#standBetween(hosts);
      return chaos;
    } catch (cause) {
      await system.stop();
      throw cause;
    }
  }

  async #makeBucket(): Promise<void> {
    const { region, credentials, environment } = this.system.stack;
    const endpoint = environment['AWS_ENDPOINT_URL_S3'] ?? '';
    const client = new S3Client({ region, credentials, endpoint, forcePathStyle: true });
    await client.send(new CreateBucketCommand({ Bucket: apartBucket }));
  }

  /** Functions and tasks read their environment when they start, and none has yet. */
  async #standBetween(hosts: Set<string>): Promise<void> {
    const { environment } = this.system.stack;
    for (const service of Object.keys(variables) as ProxiedService[]) {
      const proxy = await startFaultProxy({
        service,
        target: environment[variables[service]] ?? '',
        decide: (subject) => this.#decide(subject),
        onAnswer: (answer, isSeen) => {
          this.uploads.answered(answer, isSeen);
        },
      });
      this.#proxies.push(proxy);
      hosts.add(new URL(proxy.endpoint).host);
      Object.assign(environment, { [variables[service]]: proxy.endpoint });
    }
  }

  #decide(subject: Subject): Fault | undefined {
    this.uploads.asked(subject);
    for (const trap of this.traps) {
      const fault = trap(subject);
      if (fault !== undefined) return fault;
    }
    return this.faults.decide(subject);
  }

  get buckets(): readonly string[] {
    return [this.system.bucket, apartBucket];
  }

  /** Does a step of a job's execution, as the state machine would: its error's name, or undefined where it went well. */
  async invoke(step: Step, input: object): Promise<{ readonly error?: string; readonly answer?: unknown }> {
    const answer = await this.#lambda.send(
      new InvokeCommand({ FunctionName: this.#functionOf(step), Payload: JSON.stringify(input) }),
    );
    const document: unknown = JSON.parse(Buffer.from(answer.Payload ?? []).toString() || 'null');
    if (answer.FunctionError === undefined) return { answer: document };
    const named = document as { errorType?: string } | null;
    return { error: named?.errorType ?? 'Unknown' };
  }

  /** Delivers a job's Schedule once more, with its newest token, and waits for no answer: it may stay for minutes. */
  async scheduleAgain(jobId: string): Promise<void> {
    const { events = [] } = await this.#states.send(
      new GetExecutionHistoryCommand({ executionArn: this.#executionOf(jobId), reverseOrder: true }),
    );
    const parameters = events.map(({ taskScheduledEventDetails }) => taskScheduledEventDetails?.parameters);
    const newest = parameters.find((each) => each?.includes('taskToken') === true);
    if (newest === undefined) return; // It has not come so far.
    const { Payload } = JSON.parse(newest) as { Payload: object };
    await this.#lambda.send(
      new InvokeCommand({
        FunctionName: this.#functionOf('Schedule'),
        InvocationType: 'Event',
        Payload: JSON.stringify(Payload),
      }),
    );
  }

  #functionOf(step: Step): string {
    const name = this.#steps.get(step);
    if (name === undefined) throw new Error(`the state machine has no step ${step} with a function`);
    return name;
  }

  #executionOf(jobId: string): string {
    const machine = this.system.stack.outputs[OutputName.stateMachine] ?? '';
    return `${machine.replace(':stateMachine:', ':execution:')}:${jobId}`;
  }

  /** Aborts a job's execution as one does in the console. */
  async abort(jobId: string): Promise<void> {
    const executionArn = this.#executionOf(jobId);
    await this.#states.send(new StopExecutionCommand({ executionArn, error: 'Aborted', cause: 'by a user' }));
  }

  async stop(keep: boolean): Promise<void> {
    await this.system.stop({ keep });
    for (const proxy of this.#proxies) await proxy.close();
  }
}
