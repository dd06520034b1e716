import { ownValue } from '../../lib/own.ts';
import { zoneIdOfName } from './zone-ids.ts';

/** The account that everything is in. */
export const LOCAL_ACCOUNT = '000000000000';

/** What a resource is known by once it is there. */
export interface Identity {
  /** What `Ref` gives. */
  readonly ref: string;
  /** What `Fn::GetAtt` gives, by attribute. */
  readonly attributes: Readonly<Record<string, string>>;
}

/** What an identity is derived from. */
export interface IdentitySource {
  readonly region: string;
  readonly stack: string;
  readonly logicalId: string;
  /** A property that names the resource; undefined where the template leaves the name open. */
  readonly property: (name: string) => string | undefined;
}

type Identify = (source: IdentitySource) => Identity;

const arnOf = ({ region }: IdentitySource, service: string, resource: string): string =>
  `arn:aws:${service}:${region}:${LOCAL_ACCOUNT}:${resource}`;

/** As CloudFormation names what has no name, but the same each time. */
const generated = ({ stack, logicalId }: IdentitySource, maxLength = 64): string =>
  `${stack}-${logicalId}`.slice(0, maxLength);

const lettersOnly = ({ logicalId }: IdentitySource): string =>
  logicalId.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

const plain =
  (attributes: (source: IdentitySource, ref: string) => Record<string, string> = () => ({})): Identify =>
  (source) => {
    const ref = generated(source, 128);
    return { ref, attributes: attributes(source, ref) };
  };

/** Every type of resource that the embedded stack knows: what it serves, and what it may leave out. */
const identifiers: Readonly<Record<string, Identify>> = {
  'AWS::DynamoDB::Table': (source) => {
    const ref = source.property('TableName') ?? generated(source);
    return { ref, attributes: { Arn: arnOf(source, 'dynamodb', `table/${ref}`) } };
  },
  'AWS::S3::Bucket': (source) => {
    const ref = source.property('BucketName') ?? generated(source, 63).toLowerCase();
    return {
      ref,
      attributes: {
        Arn: `arn:aws:s3:::${ref}`,
        DomainName: `${ref}.s3.amazonaws.com`,
        RegionalDomainName: `${ref}.s3.${source.region}.amazonaws.com`,
      },
    };
  },
  'AWS::S3Express::DirectoryBucket': (source) => {
    const ref = source.property('BucketName') ?? `${lettersOnly(source)}--use1-az1--x-s3`;
    return { ref, attributes: { Arn: arnOf(source, 's3express', `bucket/${ref}`) } };
  },
  'AWS::Lambda::Function': (source) => {
    const ref = source.property('FunctionName') ?? generated(source);
    return { ref, attributes: { Arn: arnOf(source, 'lambda', `function:${ref}`) } };
  },
  'AWS::StepFunctions::StateMachine': (source) => {
    const name = source.property('StateMachineName') ?? generated(source, 80);
    const arn = arnOf(source, 'states', `stateMachine:${name}`);
    return { ref: arn, attributes: { Arn: arn, Name: name } };
  },
  'AWS::ECS::Cluster': (source) => {
    const ref = source.property('ClusterName') ?? generated(source);
    return { ref, attributes: { Arn: arnOf(source, 'ecs', `cluster/${ref}`) } };
  },
  'AWS::ECS::TaskDefinition': (source) => {
    const family = source.property('Family') ?? generated(source);
    const arn = arnOf(source, 'ecs', `task-definition/${family}:1`);
    return { ref: arn, attributes: { TaskDefinitionArn: arn } };
  },
  'AWS::ApiGateway::RestApi': (source) => {
    const ref = lettersOnly(source).slice(-10);
    return { ref, attributes: { RootResourceId: `${ref}-root`, RestApiId: ref } };
  },
  'AWS::ApiGateway::Stage': (source) => ({ ref: source.property('StageName') ?? 'prod', attributes: {} }),
  'AWS::ApiGateway::Model': (source) => ({
    ref: source.property('Name') ?? lettersOnly(source),
    attributes: {},
  }),
  'AWS::Logs::LogGroup': (source) => {
    const ref = source.property('LogGroupName') ?? generated(source, 512);
    return { ref, attributes: { Arn: `${arnOf(source, 'logs', `log-group:${ref}`)}:*` } };
  },
  'AWS::Events::Rule': (source) => {
    const ref = source.property('Name') ?? generated(source);
    return { ref, attributes: { Arn: arnOf(source, 'events', `rule/${ref}`) } };
  },
  'AWS::IAM::Role': (source) => {
    const ref = source.property('RoleName') ?? generated(source);
    return { ref, attributes: { Arn: `arn:aws:iam::${LOCAL_ACCOUNT}:role/${ref}`, RoleId: ref } };
  },
  'AWS::EC2::VPC': plain((_source, ref) => ({ VpcId: ref, DefaultSecurityGroup: `${ref}-default` })),
  'AWS::EC2::Subnet': plain((source, ref) => {
    const zone = source.property('AvailabilityZone');
    const zoneId = zone === undefined ? undefined : zoneIdOfName(zone);
    return {
      SubnetId: ref,
      ...(zone === undefined ? {} : { AvailabilityZone: zone }),
      ...(zoneId === undefined ? {} : { AvailabilityZoneId: zoneId }),
    };
  }),
  'AWS::EC2::SecurityGroup': plain((_source, ref) => ({ GroupId: ref })),
  'AWS::EC2::RouteTable': plain((_source, ref) => ({ RouteTableId: ref })),
  'AWS::EC2::InternetGateway': plain((_source, ref) => ({ InternetGatewayId: ref })),
  'AWS::ApiGateway::Resource': plain((_source, ref) => ({ ResourceId: ref })),
  'AWS::ApiGateway::Deployment': plain((_source, ref) => ({ DeploymentId: ref })),
  'AWS::ApiGateway::RequestValidator': plain((_source, ref) => ({ RequestValidatorId: ref })),
  'AWS::ApiGateway::Account': plain(),
  'AWS::ApiGateway::GatewayResponse': plain(),
  'AWS::ApiGateway::Method': plain(),
  'AWS::CDK::Metadata': plain(),
  'AWS::EC2::SecurityGroupIngress': plain(),
  'AWS::EC2::Route': plain(),
  'AWS::ECS::ClusterCapacityProviderAssociations': plain(),
  'AWS::EC2::SubnetRouteTableAssociation': plain(),
  'AWS::EC2::VPCEndpoint': plain(),
  'AWS::EC2::VPCGatewayAttachment': plain(),
  'AWS::IAM::Policy': plain(),
  'AWS::Lambda::EventInvokeConfig': plain(),
  'AWS::Lambda::Permission': plain(),
  'AWS::S3::BucketPolicy': plain(),
  'AWS::S3Express::BucketPolicy': plain(),
};

/** How resources of a type are named, or undefined for a type that the embedded stack does not know. */
export const identifierOf = (type: string): Identify | undefined => ownValue(identifiers, type);
