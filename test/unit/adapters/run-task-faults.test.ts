import { describe, expect, it } from 'vitest';
import { refusalOfFailure, refusalOfFault } from '../../../src/adapters/aws/run-task-faults.ts';

const fault = (name: string, message: string, status: number | undefined = 400) => ({
  name,
  message,
  status,
});

describe('a RunTask that ECS answers with an error', () => {
  it.each([
    fault(
      'InvalidParameterException',
      'Error retrieving security group information for [sg-05937427457b61ff5]: Request limit exceeded. (ErrorCode: RequestLimitExceeded)',
    ),
    fault(
      'InvalidParameterException',
      'Error retrieving subnet information for [subnet-1]: Request limit exceeded. (ErrorCode: RequestLimitExceeded)',
    ),
    fault(
      'InvalidParameterException',
      'com.amazonaws.services.ec2.model.AmazonEC2Exception: Request limit exceeded.',
    ),
    fault('InvalidParameterException', 'ThrottlingException: Rate exceeded'),
    fault('ClientException', 'Rate exceeded'),
    fault('ClientException', 'Too many requests, please try again later'),
    fault(
      'InvalidParameterException',
      'InsufficientFreeAddressesInSubnet: the subnet subnet-1 does not have enough free addresses',
    ),
    fault(
      'ClientException',
      'Capacity is unavailable at this time. Please try again later or in a different availability zone',
    ),
    fault('ClientException', "You've reached the limit on the number of vCPUs you can run concurrently"),
    fault('ClientException', "You've reached the limit on the number of tasks you can run concurrently"),
    fault('ServerException', 'Service Unavailable. Please try again later.', 500),
    fault('ThrottlingException', 'Rate exceeded'),
    fault('LimitExceededException', 'The limit for the resource has been exceeded.'),
    fault('TimeoutError', 'no answer', undefined),
  ])('may be tried later: $name $message', (given) => {
    expect(refusalOfFault(given)).toEqual({
      outcome: 'throttled',
      message: `${given.name}: ${given.message}`,
    });
  });

  it.each([
    fault(
      'InvalidParameterException',
      "Error retrieving subnet information for [subnet-1]: The subnet ID 'subnet-1' does not exist (ErrorCode: InvalidSubnetID.NotFound)",
    ),
    fault(
      'InvalidParameterException',
      "Error retrieving security group information for [sg-1]: The security group 'sg-1' does not exist (ErrorCode: InvalidGroup.NotFound)",
    ),
    fault('InvalidParameterException', 'No Fargate configuration exists for given values.'),
    fault('InvalidParameterException', 'Container Overrides length must be at most 8192'),
    fault('InvalidParameterException', 'The specified capacity provider FARGATE_SPOT was not found.'),
    fault('InvalidParameterException', 'subnets can not be empty.'),
    fault('ClientException', 'TaskDefinition is inactive'),
    fault('ClusterNotFoundException', 'Cluster not found.'),
    fault(
      'PlatformTaskDefinitionIncompatibilityException',
      'The specified platform version does not satisfy the requirements',
    ),
    fault('BlockedException', 'Your account was blocked'),
  ])('is refused at once by name: $name $message', (given) => {
    expect(refusalOfFault(given)).toEqual({ outcome: 'refused', message: `${given.name}: ${given.message}` });
  });

  it('is refused with what to do where the role of ECS is missing', () => {
    const missing = fault(
      'InvalidParameterException',
      'Unable to assume the service linked role. Please verify that the ECS service linked role exists.',
    );
    expect(refusalOfFault(missing)).toEqual({
      outcome: 'refused',
      message:
        'InvalidParameterException: Unable to assume the service linked role. Please verify that the ECS service linked role exists.; make it with: aws iam create-service-linked-role --aws-service-name ecs.amazonaws.com, and deploy again',
    });
  });
});

describe('a RunTask that lists the task among its failures', () => {
  it.each([
    { reason: 'RESOURCE:CPU', detail: 'all 2 places for tasks are taken' },
    { reason: 'RESOURCE:ENI' },
    { reason: 'RESOURCE:MEMORY' },
    {
      reason:
        'Capacity is unavailable at this time. Please try again later or in a different availability zone',
    },
    { reason: 'limit exceeded' },
  ])('may be tried later: $reason', (given) => {
    expect(refusalOfFailure(given).outcome).toBe('throttled');
  });

  it.each([{ reason: 'ATTRIBUTE' }, { reason: 'MISSING', detail: 'cluster' }, { reason: 'LOCATION' }])(
    'is refused: %j',
    (given) => {
      expect(refusalOfFailure(given).outcome).toBe('refused');
    },
  );

  it('may be tried later where ECS names no reason, as it does to a token of an hour ago', () => {
    expect(refusalOfFailure({})).toEqual({ outcome: 'throttled', message: 'ECS names no reason' });
  });
});
