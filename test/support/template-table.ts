import type { CreateTableCommandInput } from '@aws-sdk/client-dynamodb';
import * as z from 'zod';

const properties = z.looseObject({
  KeySchema: z.array(z.unknown()),
  AttributeDefinitions: z.array(z.unknown()),
  BillingMode: z.literal('PAY_PER_REQUEST'),
  LocalSecondaryIndexes: z.array(z.unknown()).optional(),
  GlobalSecondaryIndexes: z.array(z.unknown()).optional(),
});

/** What `CreateTable` is given for the table of the synthesized template, but for its name. */
export type TableLayout = Omit<CreateTableCommandInput, 'TableName'>;

let layout: Promise<TableLayout> | undefined;

/** The table's layout in the template of the storage stack, synthesized once. */
export function templateTable(): Promise<TableLayout> {
  layout ??= synthesize();
  return layout;
}

async function synthesize(): Promise<TableLayout> {
  const { App } = await import('aws-cdk-lib');
  const { Template } = await import('aws-cdk-lib/assertions');
  const { StorageStack } = await import('../../cdk/stacks/storage.ts');
  const { readConfig } = await import('../../cdk/config.ts');
  const app = new App();
  const stack = new StorageStack(app, 'Storage', { config: readConfig(app.node) });
  const [table] = Object.values(Template.fromStack(stack).findResources('AWS::DynamoDB::Table'));
  const { KeySchema, AttributeDefinitions, BillingMode, ...indexes } = properties.parse(
    table?.['Properties'],
  );
  const { LocalSecondaryIndexes, GlobalSecondaryIndexes } = indexes;
  return {
    KeySchema,
    AttributeDefinitions,
    BillingMode,
    LocalSecondaryIndexes,
    GlobalSecondaryIndexes,
  } as TableLayout;
}
