import type { RequestTally } from '../../contracts/requests.ts';
import { consumedUnits } from './consumed-units.ts';

/** Takes what one try over HTTP comes to. */
export type CountRequests = (tally: RequestTally) => void;

/** What an answer's deserializer gives, as far as it is looked at here. */
interface Answered {
  readonly output?: unknown;
}

/** The one thing that all clients of the SDK have in common here. */
export interface CountableClient {
  readonly middlewareStack: {
    add(middleware: never, options: never): void;
  };
}

type Next = (args: { input: Record<string, unknown> }) => Promise<Answered>;
type Middleware = (next: Next, context: { readonly commandName?: string }) => Next;

/** S3's operations by the class that they are billed by; those that are not named here are GETs. */
const s3Classes: ReadonlyMap<string, 'put' | 'list' | 'other'> = new Map([
  ['PutObject', 'put'],
  ['CopyObject', 'put'],
  ['CreateMultipartUpload', 'put'],
  ['UploadPart', 'put'],
  ['UploadPartCopy', 'put'],
  ['CompleteMultipartUpload', 'put'],
  ['ListObjectsV2', 'list'],
  ['ListMultipartUploads', 'list'],
  ['ListParts', 'list'],
  ['DeleteObject', 'other'],
  ['DeleteObjects', 'other'],
  ['AbortMultipartUpload', 'other'],
] as const);

/**
 * Counts each try of a client of S3, those that the SDK repeats as well.
 *
 * Inside of the SDK's retries, so that it sees every request that leaves the process, once.
 */
export function countS3<Client extends CountableClient>(client: Client, count: CountRequests): Client {
  return counting(client, (name) => {
    count({ [s3Classes.get(name) ?? 'get']: 1 });
  });
}

/** Counts each invocation that Lambda has accepted: those that it refuses are free. */
export function countLambda<Client extends CountableClient>(client: Client, count: CountRequests): Client {
  return counting(client, (_name, outcome) => {
    if (outcome.kind === 'answered') count({ lambda: 1 });
  });
}

/**
 * Counts each try of a client of DynamoDB, and the units that it consumed, for which each request asks DynamoDB itself.
 * A database that does not tell them is taken at the sizes of what it wrote and gave.
 */
export function countDynamo<Client extends CountableClient>(client: Client, count: CountRequests): Client {
  const ask: Middleware = (next) => (args) =>
    next({ ...args, input: { ReturnConsumedCapacity: 'TOTAL', ...args.input } });
  addMiddleware(client, ask, {
    step: 'initialize',
    name: 'outriderAskForUnits',
    priority: 'low',
    override: true,
  });
  return counting(client, (name, outcome, input) => {
    count({ calls: 1, ...consumedUnits(name, outcome, input) });
  });
}

/** What has become of a try. */
export type TryOutcome =
  | { readonly kind: 'answered'; readonly output: unknown }
  | { readonly kind: 'failed'; readonly error: unknown };

function counting<Client extends CountableClient>(
  client: Client,
  note: (commandName: string, outcome: TryOutcome, input: Record<string, unknown>) => void,
): Client {
  const middleware: Middleware = (next, context) => async (args) => {
    const name = (context.commandName ?? '').replace(/Command$/, '');
    let answered: Answered;
    try {
      answered = await next(args);
    } catch (error) {
      note(name, { kind: 'failed', error }, args.input);
      throw error;
    }
    note(name, { kind: 'answered', output: answered.output }, args.input);
    return answered;
  };
  // Before the deserializer, so that it gets what that makes of an answer, or the error that it throws.
  addMiddleware(client, middleware, {
    step: 'deserialize',
    name: 'outriderCount',
    priority: 'high',
    override: true,
  });
  return client;
}

/** Each client's stack is typed by its own commands; what is added here fits them all. */
export function addMiddleware(client: CountableClient, middleware: Middleware, options: object): void {
  client.middlewareStack.add(middleware as never, options as never);
}
