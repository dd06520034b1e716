import { ArnFormat, CfnOutput, Duration, RemovalPolicy, Stack, type StackProps } from 'aws-cdk-lib';
import {
  AccessLogFormat,
  AuthorizationType,
  EndpointType,
  type IResource,
  JsonSchemaType,
  LambdaIntegration,
  LogGroupLogDestination,
  MethodLoggingLevel,
  type MethodOptions,
  type Model,
  ResponseType,
  RestApi,
  type StageOptions,
} from 'aws-cdk-lib/aws-apigateway';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { forecastPrefix } from '../../src/contracts/keys.ts';
import { OutputName, Setting, TableSchema } from '../../src/contracts/settings.ts';
import type { OutriderConfig } from '../config.ts';
import { acknowledge, acknowledgeWildcards } from '../constructs/acknowledge.ts';
import { handlerCode } from '../constructs/bundle.ts';
import { acknowledgeObjects, grantItems, grantObjectReads } from '../constructs/grants.ts';
import { functionRole, jobFunction } from '../constructs/job-function.ts';
import { addSharedParameters, userCredentials } from '../constructs/shared-parameters.ts';
import { zonalStorage } from '../constructs/zonal-storage.ts';
import { exportName, physicalName } from '../names.ts';
import type { ComputeStack } from './compute.ts';
import type { CoordinatorStack } from './coordinator.ts';
import type { StorageStack } from './storage.ts';

export interface ApiStackProps extends StackProps {
  readonly config: OutriderConfig;
  readonly storage: StorageStack;
  readonly compute: ComputeStack;
  readonly coordinator: CoordinatorStack;
}

/** The state machine's name as this stack imports it. */
const stateMachineName = 'ExportsOutputFnGetAttJobsDF1CC2D4Name313316F6';

/** The REST API by which jobs are submitted and watched. Callers are known by IAM. */
export class ApiStack extends Stack {
  readonly handler: LambdaFunction;
  readonly api: RestApi;

  constructor(scope: Construct, id: string, props: ApiStackProps) {
    super(scope, id, { description: 'Outrider: REST API', ...props });
    addSharedParameters(this);
    this.handler = this.addHandler(props);
    this.api = this.addApi(props.config);
    this.addRoutes();
    new CfnOutput(this, OutputName.apiUrl, { value: this.api.url });
  }

  private addHandler({ config, storage, compute, coordinator }: ApiStackProps): LambdaFunction {
    const { stateMachine } = coordinator;
    const role = functionRole(this, 'HandlerRole', storage.jobLogs);
    acknowledgeWildcards(
      role,
      [
        `arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:${exportName(this, 'Coordinator', stateMachineName)}:*`,
      ],
      'Executions are named by jobs; the wildcard follows the name of one state machine.',
    );
    grantItems(role, storage.table, [TableSchema.listingIndex]);
    acknowledgeObjects(role);
    grantObjectReads(role, storage.dataBucket, forecastPrefix);
    role.addToPolicy(
      new PolicyStatement({ actions: ['states:StartExecution'], resources: [stateMachine.stateMachineArn] }),
    );
    role.addToPolicy(
      new PolicyStatement({
        actions: ['states:DescribeExecution', 'states:StopExecution'],
        resources: [
          Stack.of(stateMachine).formatArn({
            service: 'states',
            resource: 'execution',
            resourceName: `${stateMachine.stateMachineName}:*`,
            arnFormat: ArnFormat.COLON_RESOURCE_NAME,
          }),
        ],
      }),
    );
    return jobFunction(this, 'Handler', {
      description: 'Outrider: REST API',
      code: handlerCode('api'),
      memoryMb: 512,
      timeout: Duration.seconds(29),
      environment: {
        [Setting.table]: storage.table.tableName,
        [Setting.dataBucket]: storage.dataBucket.bucketName,
        [Setting.stateMachineArn]: stateMachine.stateMachineArn,
        [Setting.userCredentials]: userCredentials(this),
        [Setting.zonalBuckets]: zonalStorage(this, config).names,
        ...(compute.fargate === undefined ? {} : { [Setting.fargate]: 'true' }),
      },
      logs: storage.jobLogs,
      role,
      concurrency: config.coordinatorConcurrency,
    });
  }

  private addApi(config: OutriderConfig): RestApi {
    const api = new RestApi(this, 'Api', {
      restApiName: physicalName(config),
      description: 'Submits and watches jobs of Outrider',
      // An address for all regions, which is CDK's choice, is refused in GovCloud and in China.
      endpointConfiguration: { types: [EndpointType.REGIONAL] },
      // The role by which API Gateway logs is one for the whole account, and would stay when this stack goes.
      cloudWatchRole: false,
      deployOptions: {
        stageName: 'v1',
        ...(config.apiLogs ? this.gatewayLogs(config) : {}),
        throttlingRateLimit: 100,
        throttlingBurstLimit: 200,
      },
      defaultMethodOptions: { authorizationType: AuthorizationType.IAM },
    });
    tellWhenToRetry(api);
    acknowledge(api, {
      'AwsSolutions-APIG1':
        'The handler logs each request; the gateway would need a setting of the whole account.',
      'AwsSolutions-APIG6':
        'The handler logs each request; the gateway would need a setting of the whole account.',
      'AwsSolutions-APIG3':
        'Every caller is authenticated by IAM before a handler runs; a web ACL costs by the month.',
      'AwsSolutions-COG4': 'Callers are programs with IAM credentials; there is no user pool.',
    });
    return api;
  }

  private gatewayLogs(config: OutriderConfig): StageOptions {
    const accessLogs = new LogGroup(this, 'AccessLogs', {
      retention: config.logRetentionDays,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    return {
      accessLogDestination: new LogGroupLogDestination(accessLogs),
      accessLogFormat: AccessLogFormat.jsonWithStandardFields(),
      loggingLevel: MethodLoggingLevel.ERROR,
    };
  }

  private addRoutes(): void {
    const integration = new LambdaIntegration(this.handler, { allowTestInvoke: false });
    const add = (resource: IResource, method: string, options: MethodOptions = {}): void => {
      resource.addMethod(method, integration, { requestValidator, ...options });
    };
    const jobs = this.api.root.addResource('jobs');
    const job = jobs.addResource('{id}');
    const plans = this.api.root.addResource('plans');
    const requestValidator = this.api.addRequestValidator('Validator', {
      validateRequestBody: true,
      validateRequestParameters: true,
    });
    const cursorParameter = { 'method.request.querystring.cursor': false };
    const listParameters = { 'method.request.querystring.limit': false, ...cursorParameter };

    add(jobs, 'POST', { requestModels: this.submitModel() });
    add(plans, 'POST', { requestModels: this.planModel() });
    add(jobs, 'GET', { requestParameters: listParameters });
    add(job, 'GET');
    add(job.addResource('attempts'), 'GET', { requestParameters: listParameters });
    add(job.addResource('allocations'), 'GET');
    add(job.addResource('journal'), 'GET', { requestParameters: cursorParameter });
    add(job.addResource('cancel'), 'POST');
    add(job.addResource('deadline'), 'PUT', { requestModels: this.deadlineModel() });
  }

  /**
   * The models check only that the body has the outer shape: API Gateway answers "Invalid request body" and no
   * more, while the handler names the field at fault and what would be right.
   */
  private submitModel(): Record<string, Model> {
    const model = this.api.addModel('SubmitRequest', {
      contentType: 'application/json',
      schema: {
        type: JsonSchemaType.OBJECT,
        required: ['spec'],
        properties: { spec: { type: JsonSchemaType.OBJECT }, clientToken: { type: JsonSchemaType.STRING } },
      },
    });
    return { 'application/json': model };
  }

  private planModel(): Record<string, Model> {
    const model = this.api.addModel('PlanRequest', {
      contentType: 'application/json',
      schema: {
        type: JsonSchemaType.OBJECT,
        required: ['spec'],
        properties: { spec: { type: JsonSchemaType.OBJECT } },
      },
    });
    return { 'application/json': model };
  }

  private deadlineModel(): Record<string, Model> {
    const model = this.api.addModel('DeadlineRequest', {
      contentType: 'application/json',
      schema: {
        type: JsonSchemaType.OBJECT,
        required: ['deadline'],
        properties: { deadline: { type: JsonSchemaType.STRING } },
      },
    });
    return { 'application/json': model };
  }
}

/** Seconds after which it is worth asking again. */
const RETRY_AFTER = "'2'";

/**
 * Where the front has no room for a request, or Lambda none for its function, the answer says so, and when to come back.
 * API Gateway takes a throttled function for a fault of configuration and would answer 500.
 */
function tellWhenToRetry(api: RestApi): void {
  const busy = [
    ['Throttled', ResponseType.THROTTLED, '429', 'TooManyRequests'],
    ['FunctionThrottled', ResponseType.API_CONFIGURATION_ERROR, '503', 'ServiceUnavailable'],
  ] as const;
  for (const [id, type, statusCode, error] of busy) {
    api.addGatewayResponse(id, {
      type,
      statusCode,
      responseHeaders: { 'Retry-After': RETRY_AFTER },
      templates: { 'application/json': `{"error":"${error}","message":$context.error.messageString}` },
    });
  }
}
