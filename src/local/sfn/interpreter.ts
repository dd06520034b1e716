import type * as Interpreter from 'aws-local-stepfunctions';

let loading: Promise<typeof Interpreter> | undefined;

/**
 * What runs state machines. It comes with a validator of definitions and takes as long to load as all other services
 * together, so it is loaded when the first execution begins, or when somebody asks for it before.
 */
export const loadInterpreter = (): Promise<typeof Interpreter> =>
  (loading ??= import('aws-local-stepfunctions'));
