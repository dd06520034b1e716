import {
  assumeRoleBy,
  dynamoClient,
  ecsClient,
  lambdaClient,
  s3Client,
  s3ReadClient,
  s3ZonalClients,
  sfnClient,
} from '../../src/adapters/aws/clients.ts';
import { watchClock } from '../../src/adapters/aws/clock-error.ts';
import { DynamoAssignmentStatistics } from '../../src/adapters/aws/dynamo-assignment-statistics.ts';
import { DynamoAttemptStore } from '../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoCapacityStore } from '../../src/adapters/aws/dynamo-capacity-store.ts';
import { ledgerWrites, RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import { LossBookKeeper } from '../../src/app/loss-book-keeper.ts';
import { NodeBookKeeper } from '../../src/app/node-book-keeper.ts';
import { ZoneBookKeeper } from '../../src/app/zone-book-keeper.ts';
import { DynamoDecisionLog } from '../../src/adapters/aws/dynamo-decision-log.ts';
import { DynamoJobWords } from '../../src/adapters/aws/dynamo-job-words.ts';
import { DynamoJobStore } from '../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoJournalStore } from '../../src/adapters/aws/dynamo-journal-store.ts';
import { DynamoLeaseStore } from '../../src/adapters/aws/dynamo-lease-store.ts';
import { DynamoLossBookStore } from '../../src/adapters/aws/dynamo-loss-book-store.ts';
import { DynamoNodeBookStore } from '../../src/adapters/aws/dynamo-node-book-store.ts';
import { DynamoZoneBookStore } from '../../src/adapters/aws/dynamo-zone-book-store.ts';
import { DynamoRoster } from '../../src/adapters/aws/dynamo-roster.ts';
import { DynamoStragglerStatistics } from '../../src/adapters/aws/dynamo-straggler-statistics.ts';
import { DynamoSweepMark } from '../../src/adapters/aws/dynamo-sweep-mark.ts';
import { DynamoTable } from '../../src/adapters/aws/dynamo-table.ts';
import { EcsTaskStopper } from '../../src/adapters/aws/ecs-task-stopper.ts';
import { LambdaForecaster } from '../../src/adapters/aws/lambda-forecaster.ts';
import { LambdaEcsLauncher, type LauncherPlaces } from '../../src/adapters/aws/lambda-ecs-launcher.ts';
import type { ReportUnreadable } from '../../src/adapters/aws/report-unreadable.ts';
import { S3ForecastStore } from '../../src/adapters/aws/s3-forecast-store.ts';
import { S3ObjectStore } from '../../src/adapters/aws/s3-object-store.ts';
import { partitionOf, sessionPolicy } from '../../src/adapters/aws/session-policy.ts';
import { SfnCoordinator } from '../../src/adapters/aws/sfn-coordinator.ts';
import { SfnTaskAnswers } from '../../src/adapters/aws/sfn-task-answers.ts';
import { AsyncRequestMeter } from '../../src/adapters/node/async-request-meter.ts';
import { JsonLog } from '../../src/adapters/node/json-log.ts';
import { RandomIdSource } from '../../src/adapters/node/random-id-source.ts';
import { StsJobAccess } from '../../src/adapters/aws/sts-job-access.ts';
import { SystemClock } from '../../src/adapters/node/system-clock.ts';
import type { ComputeForecastDeps } from '../../src/app/compute-forecast.ts';
import type { FinishDeps } from '../../src/app/finish-job.ts';
import type { PlanDeps } from '../../src/app/plan-job.ts';
import type { WorkerEndDeps } from '../../src/app/record-worker-end.ts';
import type { SweepDeps } from '../../src/app/sweep-jobs.ts';
import type { ResidentDeps } from '../../src/app/resident-deps.ts';
import type { SchedulerDeps } from '../../src/app/scheduler-deps.ts';
import type { RequestTally } from '../../src/contracts/requests.ts';
import { Setting } from '../../src/contracts/settings.ts';
import { epochMs } from '../../src/contracts/units.ts';
import { pricesWithoutAddresses } from '../../src/contracts/prices.ts';
import { mostWorkMs } from '../../src/core/model/time-limit.ts';
import type { Log } from '../../src/ports/log.ts';
import { operators } from '../../src/operators/registry.ts';
import type { ApiDeps } from '../api/routes.ts';
import { CountedLog } from './counted-log.ts';
import type { Metered } from './metered.ts';
import {
  durationSetting,
  type Environment,
  flagSetting,
  listSetting,
  numberSetting,
  subnetsSetting,
  textSetting,
  workerFunctionsSetting,
  zonalBucketsSetting,
} from './settings.ts';

/** The meter of a function of the coordinator, whose time counts as well as its requests. */
const meterOf = (env: Environment): AsyncRequestMeter =>
  new AsyncRequestMeter({
    memoryMb: Number(env['AWS_LAMBDA_FUNCTION_MEMORY_SIZE'] ?? 0),
    elapsedMs: () => performance.now(),
  });

/** What every function has: time, log, table and objects. */
function buildCommon(env: Environment, requests = meterOf(env)) {
  const count = (tally: RequestTally): void => {
    requests.count(tally);
  };
  const aws = { region: env['AWS_REGION'] ?? 'us-east-1', env, count };
  const dynamo = dynamoClient(aws);
  const aheadMs = watchClock(dynamo);
  const table = new DynamoTable(dynamo, textSetting(env, Setting.table));
  const log = new CountedLog(new JsonLog(), requests);
  return {
    aws,
    table,
    /** How far our clock is ahead, by the table's last answer. */
    aheadMs,
    requests,
    clock: new SystemClock(),
    log,
    jobs: new DynamoJobStore(table, reportTo(log)),
    objects: new S3ObjectStore(s3Client(aws), { reads: s3ReadClient(aws), zonal: s3ZonalClients(aws) }),
    dataBucket: textSetting(env, Setting.dataBucket),
    zonalBuckets: zonalBucketsSetting(env),
    ...(env[Setting.publicIps] === 'false' ? { prices: pricesWithoutAddresses } : {}),
  };
}

const reportTo =
  (log: Log): ReportUnreadable =>
  (record) => {
    log.warn('record-unreadable', record);
  };

export function buildPlanDeps(env: Environment): PlanDeps & Metered {
  const totalSlots = numberSetting(env, Setting.totalSlots);
  return { ...buildCommon(env), ids: new RandomIdSource(), totalSlots };
}

export function buildFinishDeps(env: Environment, requests = meterOf(env)): FinishDeps & Metered {
  const common = buildCommon(env, requests);
  const hasFargate = flagSetting(env, Setting.fargate);
  return {
    ...common,
    attempts: new DynamoAttemptStore(common.table),
    ...(hasFargate
      ? { workers: new EcsTaskStopper(ecsClient(common.aws), textSetting(env, Setting.cluster)) }
      : {}),
    ledger: new RuledCapacityLedger(new DynamoCapacityStore(common.table, undefined, reportTo(common.log))),
    stragglers: new DynamoStragglerStatistics(common.table, reportTo(common.log)),
  };
}

/** What the step that ends a job well has besides those that end it otherwise: it learns from the run. */
export function buildFinishStepDeps(env: Environment): FinishDeps & Metered {
  const requests = meterOf(env);
  const { aws, dataBucket } = buildCommon(env, requests);
  const finish = buildFinishDeps(env, requests);
  // Empty where the stack goes with its job, and nobody could use what it has learned.
  if (env[Setting.forecastFunction] === '') return finish;
  return {
    ...finish,
    forecasts: new S3ForecastStore(s3Client(aws), dataBucket),
    forecaster: new LambdaForecaster(lambdaClient(aws), textSetting(env, Setting.forecastFunction)),
  };
}

export function buildForecastDeps(env: Environment): ComputeForecastDeps {
  const aws = { region: env['AWS_REGION'] ?? 'us-east-1', env };
  return {
    forecasts: new S3ForecastStore(s3Client(aws), textSetting(env, Setting.dataBucket)),
    log: new JsonLog(),
    totalSlots: numberSetting(env, Setting.totalSlots),
  };
}

export function buildSweepDeps(env: Environment): SweepDeps {
  const requests = meterOf(env);
  const { aws, table } = buildCommon(env, requests);
  return {
    ...buildFinishDeps(env, requests),
    mark: new DynamoSweepMark(table),
    coordinator: new SfnCoordinator(sfnClient(aws), textSetting(env, Setting.stateMachineArn)),
  };
}

/** Where Fargate tasks run; each setting must be there where there is Fargate. */
const fargatePlaces = (env: Environment): Partial<LauncherPlaces> => ({
  cluster: textSetting(env, Setting.cluster),
  taskDefinition: textSetting(env, Setting.taskDefinition),
  taskContainer: textSetting(env, Setting.taskContainer),
  subnets: subnetsSetting(env),
  securityGroups: listSetting(env, Setting.securityGroups),
  hasPublicIps: env[Setting.publicIps] !== 'false',
  isSpot: flagSetting(env, Setting.fargateSpot),
});

export function buildSchedulerDeps(env: Environment, requests = meterOf(env)): SchedulerDeps & Metered {
  const common = buildFinishDeps(env, requests);
  const { aws, table, aheadMs } = buildCommon(env, requests);
  const hasFargate = flagSetting(env, Setting.fargate);
  const places: LauncherPlaces = {
    workerFunctions: workerFunctionsSetting(env),
    ...(hasFargate ? fargatePlaces(env) : {}),
    isPerTenant: env[Setting.tenantIsolation] === 'true',
  };
  return {
    ...common,
    forecasts: new S3ForecastStore(s3Client(aws), common.dataBucket),
    leases: new DynamoLeaseStore(table),
    decisions: new DynamoDecisionLog(table),
    journals: new DynamoJournalStore(table),
    assignments: new DynamoAssignmentStatistics(table, reportTo(common.log)),
    access: new StsJobAccess({
      assume: assumeRoleBy(aws),
      table,
      ids: new RandomIdSource(),
      log: common.log,
      roleArn: textSetting(env, Setting.jobAccessRole),
      dataBucket: common.dataBucket,
      aheadMs,
    }),
    launcher: new LambdaEcsLauncher({ lambda: lambdaClient(aws), ecs: ecsClient(aws) }, places),
    config: {
      tickMs: durationSetting(env, Setting.tickMs),
      heartbeatMs: durationSetting(env, Setting.heartbeatMs),
      leaseMs: durationSetting(env, Setting.leaseMs),
      claimLeaseMs: durationSetting(env, Setting.claimLeaseMs),
      ...(hasFargate
        ? {
            fargateClaimLeaseMs: durationSetting(env, Setting.fargateClaimLeaseMs),
            lambdaMs: mostWorkMs(durationSetting(env, Setting.lambdaMs)),
          }
        : {}),
      totalSlots: numberSetting(env, Setting.totalSlots),
      hasFargate,
      ...(env[Setting.workersSince] === undefined
        ? {}
        : { workersSince: epochMs(numberSetting(env, Setting.workersSince)) }),
    },
  };
}

export function buildResidentDeps(env: Environment): ResidentDeps & Metered {
  const requests = meterOf(env);
  const { aws, table, log } = buildCommon(env, requests);
  const most =
    env[Setting.mostResidents] === undefined ? Infinity : numberSetting(env, Setting.mostResidents);
  const residents = Math.min(most, numberSetting(env, Setting.residents));
  const store = new DynamoCapacityStore(table, undefined, reportTo(log));
  return {
    ...buildSchedulerDeps(env, requests),
    nodes: new NodeBookKeeper(new DynamoNodeBookStore(table, reportTo(log)), log),
    zones: new ZoneBookKeeper(new DynamoZoneBookStore(table, reportTo(log)), log),
    lossBook: new LossBookKeeper(new DynamoLossBookStore(table, reportTo(log)), log),
    ledger: new RuledCapacityLedger(store, { writes: ledgerWrites(residents) }),
    roster: new DynamoRoster(table, reportTo(log)),
    answers: new SfnTaskAnswers(sfnClient(aws)),
    residents,
  };
}

export function buildWorkerEndDeps(env: Environment): WorkerEndDeps {
  const aws = { region: env['AWS_REGION'] ?? 'us-east-1', env };
  const table = new DynamoTable(dynamoClient(aws), textSetting(env, Setting.table));
  return {
    attempts: new DynamoAttemptStore(table),
    words: new DynamoJobWords(table),
    clock: new SystemClock(),
    log: new JsonLog(),
  };
}

export function buildApiDeps(env: Environment): ApiDeps {
  const { aws, table, clock, log, jobs, dataBucket, requests } = buildCommon(env);
  const stateMachineArn = textSetting(env, Setting.stateMachineArn);
  const places = { dataBucket, partition: partitionOf(stateMachineArn) };
  return {
    requests,
    clock,
    log,
    jobs,
    dataBucket,
    decisions: new DynamoDecisionLog(table),
    journals: new DynamoJournalStore(table),
    attempts: new DynamoAttemptStore(table),
    forecasts: new S3ForecastStore(s3Client(aws), dataBucket),
    ids: new RandomIdSource(),
    coordinator: new SfnCoordinator(sfnClient(aws), stateMachineArn),
    givesCredentials: flagSetting(env, Setting.userCredentials),
    hasFargate: flagSetting(env, Setting.fargate),
    hasZonal: zonalBucketsSetting(env).length > 0,
    checkOperator: (name, options) => {
      operators[name].check(options);
    },
    checkGrant: (grant) => {
      sessionPolicy(grant, places);
    },
  };
}
