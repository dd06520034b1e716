import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startLocalStack } from '../../src/local/stack.ts';
import {
  type EditableTemplate,
  editedAssembly,
  resourceIn,
  scratchDirectory,
} from './local-stack-support.ts';

const SYNTHESIS_LIMIT_MS = 180_000;

let assembly: Awaited<ReturnType<typeof scratchDirectory>>;
let state: Awaited<ReturnType<typeof scratchDirectory>>;

beforeEach(async () => {
  assembly = await scratchDirectory();
  state = await scratchDirectory();
});

afterEach(async () => {
  await Promise.all([assembly.remove(), state.remove()]);
});

interface Case {
  readonly mistake: string;
  readonly stack: string;
  readonly edit: (template: EditableTemplate) => void;
  readonly message: RegExp;
}

const cases: readonly Case[] = [
  {
    mistake: 'an environment variable that refers to nothing',
    stack: 'OutriderApi',
    edit: (template) => {
      const [, properties] = resourceIn(template, 'AWS::Lambda::Function');
      properties['Environment'] = { Variables: { OUTRIDER_TABLE: { Ref: 'Tabel' } } };
    },
    message:
      /^OutriderApi\/Handler\w+ \(AWS::Lambda::Function\) Properties\.Environment\.Variables\.OUTRIDER_TABLE: Ref to "Tabel"/,
  },
  {
    mistake: 'an environment variable that is no text',
    stack: 'OutriderApi',
    edit: (template) => {
      const [, properties] = resourceIn(template, 'AWS::Lambda::Function');
      properties['Environment'] = { Variables: { OUTRIDER_TABLE: ['a'] } };
    },
    message: /Properties\.Environment\.Variables\.OUTRIDER_TABLE: .*string/,
  },
  {
    mistake: 'an output that another stack imports and that is gone',
    stack: 'OutriderStorage',
    edit: (template) => {
      for (const name of Object.keys(template.Outputs)) {
        if (name.startsWith('ExportsOutputRefTable')) Reflect.deleteProperty(template.Outputs, name);
      }
    },
    message: /^OutriderCompute\/.*OUTRIDER_TABLE: import of "OutriderStorage:ExportsOutputRefTable/,
  },
  {
    mistake: 'a resource of a type that is not served',
    stack: 'OutriderStorage',
    edit: (template) => {
      template.Resources['Queue'] = { Type: 'AWS::SQS::Queue', Properties: {} };
    },
    message: /^OutriderStorage\/Queue \(AWS::SQS::Queue\): the embedded stack does not know this type/,
  },
  {
    mistake: 'a handler that is not in the code',
    stack: 'OutriderCoordinator',
    edit: (template) => {
      const [, properties] = resourceIn(template, 'AWS::Lambda::Function', 'plan');
      properties['Handler'] = 'main.handler';
    },
    message: /^OutriderCoordinator\/plan\w+ .*Properties\.Handler: the asset holds no module "main"/,
  },
  {
    mistake: 'a state machine outside the supported subset',
    stack: 'OutriderCoordinator',
    edit: (template) => {
      const [, properties] = resourceIn(template, 'AWS::StepFunctions::StateMachine');
      properties['DefinitionString'] = JSON.stringify({
        StartAt: 'Ask',
        States: {
          Ask: { Type: 'Task', Resource: 'arn:aws:states:::sqs:sendMessage.waitForTaskToken', End: true },
        },
      });
    },
    message: /state 'Ask', field 'Resource'/,
  },
  {
    mistake: 'a method without permission to invoke its function',
    stack: 'OutriderApi',
    edit: (template) => {
      const [id] = resourceIn(template, 'AWS::Lambda::Permission', 'ApijobsidcancelPOST');
      Reflect.deleteProperty(template.Resources, id);
    },
    message: /^OutriderApi\/ApijobsidcancelPOST\w+ \(AWS::ApiGateway::Method\): no AWS::Lambda::Permission/,
  },
  {
    mistake: 'a table whose index names an attribute that is not defined',
    stack: 'OutriderStorage',
    edit: (template) => {
      const [, properties] = resourceIn(template, 'AWS::DynamoDB::Table');
      properties['LocalSecondaryIndexes'] = [
        {
          IndexName: 'by-name',
          KeySchema: [
            { AttributeName: 'pk', KeyType: 'HASH' },
            { AttributeName: 'nmae', KeyType: 'RANGE' },
          ],
          Projection: { ProjectionType: 'ALL' },
        },
      ];
    },
    message: /^table OutriderStorage-Table\w+: .*ValidationException/,
  },
  {
    mistake: 'a rule with a pattern that is more than values',
    stack: 'OutriderCoordinator',
    edit: (template) => {
      const [, properties] = resourceIn(template, 'AWS::Events::Rule', 'ExecutionEnds');
      properties['EventPattern'] = { detail: { status: [{ 'anything-but': ['SUCCEEDED'] }] } };
    },
    message: /ExecutionEnds\w+ \(AWS::Events::Rule\) Properties\.EventPattern\.detail\.status: only values/,
  },
  {
    mistake: 'a rule with a schedule that has no rate',
    stack: 'OutriderCoordinator',
    edit: (template) => {
      const [, properties] = resourceIn(template, 'AWS::Events::Rule', 'SweepTimer');
      properties['ScheduleExpression'] = 'cron(0 12 * * ? *)';
    },
    message: /SweepTimer\w+ \(AWS::Events::Rule\) Properties\.ScheduleExpression: only rate/,
  },
  {
    mistake: 'a rule that may not invoke its function',
    stack: 'OutriderCoordinator',
    edit: (template) => {
      for (const [id, { Type }] of Object.entries(template.Resources))
        if (Type === 'AWS::Lambda::Permission') Reflect.deleteProperty(template.Resources, id);
    },
    message: /\(AWS::Events::Rule\): no AWS::Lambda::Permission lets the rule invoke OutriderCoordinator-/,
  },
];

describe('a template with a mistake', () => {
  it.each(cases.map((found) => [found.mistake, found] as const))(
    'does not start: %s',
    async (_, { stack, edit, message }) => {
      await editedAssembly(assembly.path, stack, edit);
      await expect(startLocalStack({ stateDir: state.path, assemblyDir: assembly.path })).rejects.toThrow(
        message,
      );
    },
    SYNTHESIS_LIMIT_MS,
  );

  it('does not start with a value for a parameter that there is not', async () => {
    await editedAssembly(assembly.path, 'OutriderStorage', () => undefined);
    const starting = startLocalStack({
      stateDir: state.path,
      assemblyDir: assembly.path,
      parameters: { TotalSlot: '4' },
    });
    await expect(starting).rejects.toThrow(
      /no stack has a parameter "TotalSlot"; there are BootstrapVersion, ClaimLeaseMs, FargateClaimLeaseMs, HeartbeatMs, LeaseMs, Residents, TickMs, TotalSlots/,
    );
  });
});
