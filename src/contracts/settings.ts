/** Names of the environment variables by which the CDK app tells functions where things are. */
export const Setting = {
  table: 'OUTRIDER_TABLE',
  dataBucket: 'OUTRIDER_DATA_BUCKET',
  /** Comma-separated names of the directory buckets of the tier `zonal`, one per zone; empty where there is none. */
  zonalBuckets: 'OUTRIDER_ZONAL_BUCKETS',
  stateMachineArn: 'OUTRIDER_STATE_MACHINE_ARN',
  /** JSON: worker size → function name. */
  workerFunctions: 'OUTRIDER_WORKER_FUNCTIONS',
  /** `true` where there is Fargate; absent otherwise, as are cluster, task definition, subnets and what goes with them. */
  fargate: 'OUTRIDER_FARGATE',
  /** `true` where tasks may run on Spot; absent otherwise. */
  fargateSpot: 'OUTRIDER_FARGATE_SPOT',
  cluster: 'OUTRIDER_CLUSTER',
  taskDefinition: 'OUTRIDER_TASK_DEFINITION',
  taskContainer: 'OUTRIDER_TASK_CONTAINER',
  /** `true` where each environment of a worker function serves one job name; absent otherwise. */
  tenantIsolation: 'OUTRIDER_TENANT_ISOLATION',
  /** Comma-separated ids. */
  subnets: 'OUTRIDER_SUBNETS',
  /**
   * Comma-separated zones of these subnets, in their order: their ids, or their names where nobody has told the ids; absent
   * where nobody has told either.
   */
  subnetZones: 'OUTRIDER_SUBNET_ZONES',
  securityGroups: 'OUTRIDER_SECURITY_GROUPS',
  /** `false` where Fargate tasks get no public addresses. */
  publicIps: 'OUTRIDER_PUBLIC_IPS',
  /** ARN of the role whose sessions attempts work with, one session a job. */
  jobAccessRole: 'OUTRIDER_JOB_ACCESS_ROLE',
  /** Slots of all jobs together. */
  totalSlots: 'OUTRIDER_TOTAL_SLOTS',
  tickMs: 'OUTRIDER_TICK_MS',
  heartbeatMs: 'OUTRIDER_HEARTBEAT_MS',
  /** How long a scheduler's lease lasts without renewal. */
  leaseMs: 'OUTRIDER_LEASE_MS',
  /** How long a launched attempt may take to claim itself, on Lambda and on Fargate. */
  claimLeaseMs: 'OUTRIDER_CLAIM_LEASE_MS',
  fargateClaimLeaseMs: 'OUTRIDER_FARGATE_CLAIM_LEASE_MS',
  /** Only where there is Fargate: the time after which Lambda ends a worker function: tasks that take longer are better off there. */
  lambdaMs: 'OUTRIDER_LAMBDA_MS',
  /** Name of the function that computes forecasts; empty: nothing is learned. */
  forecastFunction: 'OUTRIDER_FORECAST_FUNCTION',
  /** `true` where stages may ask for credentials for their user code and programs. */
  userCredentials: 'OUTRIDER_USER_CREDENTIALS',
  /** Schedulers that may be resident at once. */
  residents: 'OUTRIDER_RESIDENTS',
  /** Residents at most, whatever the setting above says: what is reserved for their function, but for one execution that enlists jobs. */
  mostResidents: 'OUTRIDER_MOST_RESIDENTS',
  /** Fargate only: the attempt's payload as JSON. */
  attemptPayload: 'OUTRIDER_ATTEMPT',
  /** Fargate only: the port at which a task answers others that read what it keeps; 0: any that is free. */
  keeperPort: 'OUTRIDER_KEEPER_PORT',
  /**
   * Fargate only: comma-separated `NAME=ID` of the zones that tasks run in, which are told their zone's name alone; absent
   * where nobody has told the ids.
   */
  zoneIds: 'OUTRIDER_ZONE_IDS',
  /** Fargate only: `true` where the task runs on Spot; absent otherwise. */
  onSpot: 'OUTRIDER_ON_SPOT',
  /** Fargate only: the task's memory in MB. It bounds the whole task, so that nothing within the container tells it. */
  memoryMb: 'OUTRIDER_MEMORY_MB',
  /** Embedded stack only: when it began, epoch milliseconds. Workers of before have ended with the stack of before. */
  workersSince: 'OUTRIDER_WORKERS_SINCE',
} as const;

/** Tags of a session, by which the policy of its role tells whose it is. */
export const SessionTag = { job: 'outrider-job' } as const;

/** Attribute and index names of the one table; CDK, the store and the embedded stack agree here. */
export const TableSchema = {
  partitionKey: 'pk',
  sortKey: 'sk',
  /** Global index of keys alone: partition `listing` (string), sort `createdAt` (number): lists of jobs. */
  listingIndex: 'by-creation',
  listingPartitionKey: 'listing',
  listingSortKey: 'createdAt',
  /** Time to live, seconds since the epoch. */
  ttl: 'expiresAt',
} as const;

/** The partition of the one table that lists jobs which want a scheduler, and the schedulers' seats. */
export const rosterPartition = 'ROSTER';
/** The partition of the ledger of slots. */
export const ledgerPartition = 'LEDGER';

/** Names of CloudFormation outputs, by which the command and the embedded stack find the system. */
export const OutputName = {
  apiUrl: 'ApiUrl',
  dataBucket: 'DataBucketName',
  table: 'TableName',
  stateMachine: 'StateMachineArn',
  /** The log group of all functions and tasks that run jobs. */
  logGroup: 'LogGroupName',
} as const;

/** CloudFormation parameters that deployments and the embedded stack set. */
export const ParameterName = {
  totalSlots: 'TotalSlots',
  tickMs: 'TickMs',
  heartbeatMs: 'HeartbeatMs',
  leaseMs: 'LeaseMs',
  claimLeaseMs: 'ClaimLeaseMs',
  fargateClaimLeaseMs: 'FargateClaimLeaseMs',
  residents: 'Residents',
  /** `true` or `false`: whether stages may ask for credentials for their user code and programs. */
  userCredentials: 'UserCredentials',
} as const;

/** CloudFormation parameters with the ids of the zones of the tier `zonal`, each with a directory bucket; empty: none. */
export const zonalZoneParameters = ['ZonalZone1', 'ZonalZone2', 'ZonalZone3'] as const;
