import { CfnParameter, type Stack } from 'aws-cdk-lib';
import { ParameterName } from '../../src/contracts/settings.ts';

/**
 * Whether stages may ask for credentials, as a stack is told: `true` or `false`. Each stack that must know has the
 * parameter itself, and `cdk deploy --parameters` gives it to all of them: what one stack exports, CloudFormation lets
 * nobody change while another imports it.
 */
export function userCredentials(stack: Stack): string {
  return new CfnParameter(stack, ParameterName.userCredentials, {
    allowedValues: ['true', 'false'],
    default: 'false',
    description: 'Whether stages may ask for the credentials of workers for their user code and programs',
  }).valueAsString;
}
