import { CfnCondition, CfnOutput, CfnParameter, Duration, Fn, Stack, type StackProps } from 'aws-cdk-lib';
import { type IGrantable, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { StateMachine } from 'aws-cdk-lib/aws-stepfunctions';
import type { Construct } from 'constructs';
import {
  OutputName,
  ParameterName,
  ledgerPartition,
  rosterPartition,
  Setting,
  TableSchema,
} from '../../src/contracts/settings.ts';
import { forecastPrefix } from '../../src/contracts/keys.ts';
import type { OutriderConfig } from '../config.ts';
import { acknowledgeWildcards } from '../constructs/acknowledge.ts';
import { handlerCode } from '../constructs/bundle.ts';
import { forecastFunction } from '../constructs/forecast-function.ts';
import {
  acknowledgeObjects,
  grantItems,
  grantKeys,
  grantObjectReads,
  grantObjectRemoval,
  grantObjectWrites,
  grantUploadListing,
  itemsOf,
  namedBuckets,
} from '../constructs/grants.ts';
import { jobAccessRole } from '../constructs/job-access-role.ts';
import { functionRole, jobFunction, type JobFunctionProps } from '../constructs/job-function.ts';
import { grantAnswering, jobMachine } from '../constructs/job-machine.ts';
import { grantDescribing, settleOnEnds, sweepEachHour } from '../constructs/job-watch.ts';
import { addSharedParameters } from '../constructs/shared-parameters.ts';
import { exportName } from '../names.ts';
import { type FargateWorkers, workerContainer } from '../constructs/fargate-workers.ts';
import { grantZonal, type ZonalStorage, zonalStorage } from '../constructs/zonal-storage.ts';
import { type ComputeStack, workerTime } from './compute.ts';
import type { StorageStack } from './storage.ts';

export interface CoordinatorStackProps extends StackProps {
  readonly config: OutriderConfig;
  readonly storage: StorageStack;
  readonly compute: ComputeStack;
}

/** The cluster's name as this stack imports it. */
const clusterReference = 'ExportsOutputRefClusterABE85976';

type Tuning = Readonly<Record<Exclude<keyof typeof ParameterName, 'userCredentials'>, CfnParameter>>;
type StepName = 'plan' | 'schedule' | 'finish' | 'fail';
/** Functions that end what the state machine has not. */
type WatchName = 'settle' | 'sweep';

/** Lambda tries for hours to settle a job: stores may be away for longer than an invocation lasts. */
const patientRetries = { attempts: 2, maxAge: Duration.hours(6) } as const;

/** What drives jobs: the state machine, and a function for each of its steps. */
export class CoordinatorStack extends Stack {
  readonly steps: Readonly<Record<StepName, LambdaFunction>>;
  readonly stateMachine: StateMachine;
  readonly watch: Readonly<Record<WatchName, LambdaFunction>>;
  /** Computes forecasts of recurring jobs after they have ended. */
  readonly forecast: LambdaFunction;
  private readonly zonal: ZonalStorage;

  constructor(scope: Construct, id: string, props: CoordinatorStackProps) {
    super(scope, id, { description: 'Outrider: planning, scheduling and ending of jobs', ...props });
    addSharedParameters(this);
    const tuning = this.addTuning();
    this.zonal = zonalStorage(this, props.config);
    const environment = {
      ...stepEnvironment(props, tuning),
      [Setting.claimLeaseMs]: this.claimLease(tuning, props.config),
      [Setting.zonalBuckets]: this.zonal.names,
    };
    const step = (name: StepName | WatchName, memoryMb: number, minutes: number): LambdaFunction =>
      this.addStep(name, { memoryMb, minutes, environment, props });
    this.steps = {
      plan: step('plan', 1_024, 15),
      schedule: step('schedule', 512, 15),
      finish: step('finish', 512, 15),
      fail: step('fail', 512, 15),
    };
    this.watch = {
      settle: this.addStep('settle', {
        memoryMb: 512,
        minutes: 15,
        environment,
        props,
        retries: patientRetries,
      }),
      sweep: step('sweep', 512, 15),
    };
    this.forecast = forecastFunction(this, {
      dataBucket: props.storage.dataBucket,
      logs: props.storage.jobLogs,
      totalSlots: tuning.totalSlots.valueAsString,
      concurrency: props.config.coordinatorConcurrency,
    });
    this.grantLearning(props);
    this.grantPlanning(props);
    this.grantRunning(props);
    this.grantSessions(props);
    this.stateMachine = jobMachine(this, 'Jobs', {
      ...this.steps,
      logRetention: props.config.logRetentionDays,
    });
    grantAnswering(this, 'ScheduleAnswers', this.steps.schedule, this.stateMachine);
    this.addWatch();
    new CfnOutput(this, OutputName.stateMachine, { value: this.stateMachine.stateMachineArn });
  }

  /**
   * Defaults are none of the context's: the CDK's command keeps the parameters of a stack that is there as they were, so that
   * another context would change nothing.
   */
  private addTuning(): Tuning {
    const parameter = (name: string, value: number, minValue: number, description: string): CfnParameter =>
      new CfnParameter(this, name, { type: 'Number', default: value, minValue, description });
    return {
      totalSlots: parameter(ParameterName.totalSlots, 900, 1, 'Attempts of all jobs that may run at once'),
      tickMs: parameter(
        ParameterName.tickMs,
        1_000,
        50,
        'Milliseconds from one decision of a scheduler to the next',
      ),
      heartbeatMs: parameter(
        ParameterName.heartbeatMs,
        10_000,
        100,
        'Longest silence of a worker, milliseconds',
      ),
      leaseMs: parameter(
        ParameterName.leaseMs,
        15_000,
        500,
        'Life of a scheduler lease without renewal, milliseconds',
      ),
      claimLeaseMs: parameter(
        ParameterName.claimLeaseMs,
        0,
        0,
        'Milliseconds to claim a launch on Lambda; 0: as long as its queue keeps events (-c claimLeaseSeconds)',
      ),
      fargateClaimLeaseMs: parameter(
        ParameterName.fargateClaimLeaseMs,
        600_000,
        500,
        'Milliseconds to claim a launch on Fargate, whose tasks take a minute to start and at times several',
      ),
      residents: parameter(
        ParameterName.residents,
        4,
        1,
        'Schedulers that may run at once; each serves many jobs',
      ),
    };
  }

  /** As the parameter says, and where that says nothing as long as Lambda keeps events, which the context says. */
  private claimLease({ claimLeaseMs }: Tuning, { claimLeaseSeconds }: OutriderConfig): string {
    const isSaid = new CfnCondition(this, 'HasClaimLeaseMs', {
      expression: Fn.conditionNot(Fn.conditionEquals(claimLeaseMs.valueAsString, '0')),
    });
    const kept = String(claimLeaseSeconds * 1_000);
    return Fn.conditionIf(isSaid.logicalId, claimLeaseMs.valueAsString, kept).toString();
  }

  private addStep(
    name: StepName | WatchName,
    options: {
      readonly memoryMb: number;
      readonly minutes: number;
      readonly environment: Record<string, string>;
      readonly props: CoordinatorStackProps;
      readonly retries?: JobFunctionProps['retries'];
    },
  ): LambdaFunction {
    const { jobLogs, table } = options.props.storage;
    const role = functionRole(this, `${name}-role`, jobLogs);
    const { inputBuckets, outputBuckets } = options.props.config;
    acknowledgeObjects(role, [...inputBuckets, ...outputBuckets]);
    // Not every function has these two; what is acknowledged and not granted harms nobody.
    acknowledgeWildcards(
      role,
      [
        `arn:<AWS::Partition>:ecs:<AWS::Region>:<AWS::AccountId>:task/${exportName(this, 'Compute', clusterReference)}/*`,
      ],
      'Tasks get their names when they start; the wildcard follows the name of one cluster.',
    );
    acknowledgeWildcards(
      role,
      [
        `arn:<AWS::Partition>:ecs:<AWS::Region>:<AWS::AccountId>:task-definition/${options.props.compute.fargate?.family ?? ''}:*`,
      ],
      'Revisions are numbered by deployments; the wildcard follows the name of one family.',
    );
    // The scheduler looks for finished jobs like one that has a deadline and never ran.
    const isLister = name === 'sweep' || name === 'schedule';
    grantItems(role, table, isLister ? [TableSchema.listingIndex] : []);
    return jobFunction(this, name, {
      description: `Outrider: ${name} of a job`,
      code: handlerCode(name),
      memoryMb: options.memoryMb,
      timeout: Duration.minutes(options.minutes),
      environment: options.environment,
      logs: jobLogs,
      role,
      ...(options.retries === undefined ? {} : { retries: options.retries }),
      concurrency: options.props.config.coordinatorConcurrency,
    });
  }

  /** What ends jobs that the state machine has not: told by its executions' ends, and by looking. */
  private addWatch(): void {
    const { settle, sweep } = this.watch;
    settleOnEnds(this, 'ExecutionEnds', this.stateMachine, settle);
    sweepEachHour(this, 'SweepTimer', sweep);
    grantDescribing(sweep, this.stateMachine);
    sweep.addEnvironment(Setting.stateMachineArn, this.stateMachine.stateMachineArn);
  }

  /** Who ends a job well learns from it, and has forecasts computed; its scheduler reads them. */
  private grantLearning({ storage }: CoordinatorStackProps): void {
    const { schedule, finish } = this.steps;
    finish.addEnvironment(Setting.forecastFunction, this.forecast.functionName);
    finish.addToRolePolicy(
      new PolicyStatement({ actions: ['lambda:InvokeFunction'], resources: [this.forecast.functionArn] }),
    );
    grantObjectReads(schedule, storage.dataBucket, forecastPrefix);
  }

  /** Planning reads what the job will read, looks whether its output is free, and writes plans, or withdraws its own. */
  private grantPlanning({ config, storage }: CoordinatorStackProps): void {
    const { plan } = this.steps;
    const others = [...new Set([...config.inputBuckets, ...config.outputBuckets])];
    for (const bucket of [storage.dataBucket, ...namedBuckets(this, others)]) {
      grantObjectReads(plan, bucket);
    }
    grantKeys(plan, config.kmsKeys ?? [], ['kms:Decrypt']);
    grantObjectWrites(plan, storage.dataBucket, 'jobs/');
    grantObjectRemoval(plan, storage.dataBucket, 'jobs/');
  }

  /** The scheduler makes a session for each job, of a role that it has no part in itself. */
  private grantSessions({ config, storage }: CoordinatorStackProps): void {
    const { schedule } = this.steps;
    const { role: scheduler } = schedule;
    if (scheduler === undefined) throw new Error('the schedule function has no role');
    const access = jobAccessRole(this, 'JobAccessRole', {
      scheduler,
      table: storage.table,
      dataBucket: storage.dataBucket,
      inputs: namedBuckets(this, config.inputBuckets),
      outputs: namedBuckets(this, config.outputBuckets),
      zonal: this.zonal,
      bucketNames: [...config.inputBuckets, ...config.outputBuckets],
      keys: config.kmsKeys ?? [],
    });
    schedule.addToRolePolicy(
      new PolicyStatement({ actions: ['sts:AssumeRole', 'sts:TagSession'], resources: [access.roleArn] }),
    );
    schedule.addEnvironment(Setting.jobAccessRole, access.roleArn);
  }

  /**
   * The scheduler reads the plan, writes manifests, launches and stops attempts, and copies what is dear to lose, from zones
   * to the data bucket, for which it may read them: it touches no output. Where its job ended while it slept it removes
   * what it wrote since. Those that end a job publish its output, or take back what was published of it, and remove its data.
   */
  private grantRunning({ config, storage, compute }: CoordinatorStackProps): void {
    const { schedule, finish, fail } = this.steps;
    const { settle, sweep } = this.watch;
    grantObjectReads(schedule, storage.dataBucket, 'jobs/');
    grantObjectWrites(schedule, storage.dataBucket, 'jobs/');
    grantObjectRemoval(schedule, storage.dataBucket, 'jobs/');
    grantUploadListing(schedule, storage.dataBucket);
    grantZonal(schedule, this.zonal, 'ReadOnly');
    for (const step of [finish, fail, settle, sweep]) {
      grantZonal(step, this.zonal, 'ReadWrite');
      grantKeys(step, config.kmsKeys ?? []);
      for (const bucket of [storage.dataBucket, ...namedBuckets(this, config.outputBuckets)]) {
        grantObjectReads(step, bucket);
        grantObjectWrites(step, bucket);
        grantObjectRemoval(step, bucket);
        grantUploadListing(step, bucket);
      }
    }
    // Jobs leave the list of those that want a scheduler, and the ledger of slots.
    schedule.addToRolePolicy(
      itemsOf(storage.table, ['dynamodb:DeleteItem'], rosterPartition, ledgerPartition),
    );
    for (const step of [finish, fail, settle, sweep])
      step.addToRolePolicy(itemsOf(storage.table, ['dynamodb:DeleteItem'], ledgerPartition));
    grantLaunching(schedule, compute);
    if (compute.fargate === undefined) return;
    grantTasks(schedule, compute.fargate);
    for (const step of [schedule, finish, fail, settle, sweep]) grantTaskStops(step, compute.fargate);
  }
}

function stepEnvironment(
  { config, storage, compute }: CoordinatorStackProps,
  tuning: Tuning,
): Record<string, string> {
  const { workers, fargate } = compute;
  const names = Object.fromEntries(
    Object.entries(workers).map(([size, { functionName }]) => [size, functionName]),
  );
  return {
    [Setting.table]: storage.table.tableName,
    [Setting.dataBucket]: storage.dataBucket.bucketName,
    [Setting.workerFunctions]: Stack.of(compute).toJsonString(names),
    ...(fargate === undefined
      ? {}
      : {
          ...fargateEnvironment(fargate, config),
          [Setting.fargateClaimLeaseMs]: tuning.fargateClaimLeaseMs.valueAsString,
          [Setting.lambdaMs]: String(workerTime.toMilliseconds()),
        }),
    ...(config.tenantIsolation ? { [Setting.tenantIsolation]: 'true' } : {}),
    [Setting.totalSlots]: tuning.totalSlots.valueAsString,
    [Setting.tickMs]: tuning.tickMs.valueAsString,
    [Setting.heartbeatMs]: tuning.heartbeatMs.valueAsString,
    [Setting.leaseMs]: tuning.leaseMs.valueAsString,
    [Setting.residents]: tuning.residents.valueAsString,
    ...(config.coordinatorConcurrency === undefined
      ? {}
      : { [Setting.mostResidents]: String(config.coordinatorConcurrency - 1) }),
  };
}

function fargateEnvironment(
  { network, cluster, family }: FargateWorkers,
  { fargate }: OutriderConfig,
): Record<string, string> {
  // By the names that workers and storage have for them: see `Place`.
  const zones = network.zoneIds.length === 0 ? network.zones : network.zoneIds;
  return {
    [Setting.fargate]: 'true',
    ...(fargate === 'spot' ? { [Setting.fargateSpot]: 'true' } : {}),
    [Setting.cluster]: cluster.ref,
    [Setting.taskDefinition]: family,
    [Setting.taskContainer]: workerContainer,
    [Setting.subnets]: network.subnets.join(','),
    ...(zones.length === 0 ? {} : { [Setting.subnetZones]: zones.join(',') }),
    [Setting.securityGroups]: network.securityGroups.join(','),
    ...(network.publicIps ? {} : { [Setting.publicIps]: 'false' }),
  };
}

function grantLaunching(grantee: IGrantable, { workers }: ComputeStack): void {
  grantee.grantPrincipal.addToPrincipalPolicy(
    new PolicyStatement({
      actions: ['lambda:InvokeFunction'],
      resources: Object.values(workers).map(({ functionArn }) => functionArn),
    }),
  );
}

const inClusterOf = ({ cluster }: FargateWorkers): object => ({
  ArnEquals: { 'ecs:cluster': cluster.attrArn },
});

const ecsArn = ({ cluster }: FargateWorkers, resource: string, resourceName: string): string =>
  Stack.of(cluster).formatArn({ service: 'ecs', resource, resourceName });

/** Tasks are started of every revision of one definition, which each deployment numbers anew. */
function grantTasks(grantee: IGrantable, fargate: FargateWorkers): void {
  const { taskDefinition, family } = fargate;
  const statements = [
    new PolicyStatement({
      actions: ['ecs:RunTask'],
      resources: [ecsArn(fargate, 'task-definition', `${family}:*`)],
      conditions: inClusterOf(fargate),
    }),
    new PolicyStatement({
      actions: ['iam:PassRole'],
      resources: [taskDefinition.taskRole.roleArn, taskDefinition.obtainExecutionRole().roleArn],
      conditions: { StringEquals: { 'iam:PassedToService': 'ecs-tasks.amazonaws.com' } },
    }),
  ];
  for (const statement of statements) grantee.grantPrincipal.addToPrincipalPolicy(statement);
}

/** Tasks get their names when they start, so the right to stop, and to see which are left, is for every task of the cluster. */
function grantTaskStops(grantee: IGrantable, fargate: FargateWorkers): void {
  grantee.grantPrincipal.addToPrincipalPolicy(
    new PolicyStatement({
      actions: ['ecs:DescribeTasks', 'ecs:StopTask'],
      resources: [ecsArn(fargate, 'task', `${fargate.cluster.ref}/*`)],
      conditions: inClusterOf(fargate),
    }),
  );
}
