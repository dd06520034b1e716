import { CfnParameter, type CfnParameterProps, type Stack } from 'aws-cdk-lib';
import { ParameterName, zonalZoneParameters } from '../../src/contracts/settings.ts';
import { acknowledge } from './acknowledge.ts';

type SharedName = (typeof zonalZoneParameters)[number] | typeof ParameterName.userCredentials;

const zone: CfnParameterProps = {
  default: '',
  allowedPattern: '([a-z0-9-]+-az[0-9]+)?',
  constraintDescription: 'must be the id of a zone, such as use1-az4, or empty',
  description:
    'Id of a zone with S3 Express One Zone in which jobs may have intermediate data (tier zonal), such as use1-az4; empty: none',
};

const shared: readonly (readonly [SharedName, CfnParameterProps])[] = [
  [
    ParameterName.userCredentials,
    {
      allowedValues: ['true', 'false'],
      default: 'false',
      description: 'Whether stages may ask for the credentials of workers for their user code and programs',
    },
  ],
  ...zonalZoneParameters.map((name) => [name, zone] as const),
];

/**
 * Gives a stack the parameters that all stacks have, whether it reads them or not: what is given for no stack by name
 * (`cdk deploy --all --parameters ZonalZone1=use1-az4`) the CDK's command gives to each, and CloudFormation refuses what a
 * stack does not know. None is exported instead: CloudFormation lets nobody change what another stack imports. Those of one
 * stack are given with its name: `--parameters OutriderCoordinator:TotalSlots=500`.
 */
export function addSharedParameters(stack: Stack): void {
  for (const [name, props] of shared) new CfnParameter(stack, name, props);
  acknowledge(stack, {
    'CloudFormation-Validate::W2001':
      'Not each stack reads all of them: what is given for all has to be known to each',
  });
}

/** One of those, as its stack is told. */
export function sharedParameter(stack: Stack, name: SharedName): string {
  const parameter = stack.node.findChild(name);
  if (!(parameter instanceof CfnParameter)) throw new Error(`${name} of ${stack.stackName} is no parameter`);
  return parameter.valueAsString;
}

/** Whether stages may ask for credentials: `true` or `false`. */
export const userCredentials = (stack: Stack): string =>
  sharedParameter(stack, ParameterName.userCredentials);
