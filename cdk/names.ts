import { Stack } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import type { OutriderConfig } from './config.ts';

/** The stacks of a deployment. */
const parts = ['Storage', 'Compute', 'Coordinator', 'Api'] as const;
export type StackPart = (typeof parts)[number];

/** Id and name of a stack: of the deployment without a name, `OutriderApi`, of the one named dev, `Outrider-dev-Api`. */
export const stackName = ({ name }: Pick<OutriderConfig, 'name'>, part: StackPart): string =>
  name === undefined ? `Outrider${part}` : `Outrider-${name}-${part}`;

/** A physical name of a deployment's own: `outrider-worker`, or `outrider-dev-worker`. */
export const physicalName = ({ name }: Pick<OutriderConfig, 'name'>, what = ''): string =>
  ['outrider', name ?? '', what].filter((word) => word !== '').join('-');

/** An export of another stack of the deployment that a construct belongs to, as cdk-nag names it. */
export function exportName(construct: IConstruct, part: StackPart, reference: string): string {
  const own = Stack.of(construct).stackName;
  const last = parts.find((each) => own.endsWith(each));
  return `${own.slice(0, own.length - (last?.length ?? 0))}${part}:${reference}`;
}
