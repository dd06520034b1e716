import { ErrorName, OutriderError } from '../../src/contracts/errors.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** What a handler of this system looks at of Lambda's context. */
export interface InvocationContext {
  readonly awsRequestId: string;
  readonly getRemainingTimeInMillis: () => number;
}

type Handler = (event: unknown, context: InvocationContext) => Promise<unknown>;

const version = '2018-06-01';
const mostStackLines = 50;

/**
 * Takes one invocation after the other from Lambda's Runtime API, for as long as the process lives: the environment is
 * frozen and ended by Lambda. Throws where the API is not there or answers what it never does, so that Lambda starts
 * the environment anew.
 *
 * @param invocations - How many are served at most; no bound but where it is tested.
 */
export async function serveInvocations(
  env: Environment,
  handler: Handler,
  invocations = Number.POSITIVE_INFINITY,
): Promise<void> {
  const host = env['AWS_LAMBDA_RUNTIME_API'];
  if (host === undefined)
    throw new OutriderRuntimeError('AWS_LAMBDA_RUNTIME_API is not set: this module runs in Lambda alone');
  const base = `http://${host}/${version}/runtime/invocation`;
  for (let served = 0; served < invocations; served++) {
    // Lambda answers when there is something to do; the environment is frozen until then.
    const next = await fetch(`${base}/next`);
    const requestId = next.headers.get('lambda-runtime-aws-request-id');
    if (!next.ok || requestId === null)
      throw new OutriderRuntimeError(`the Runtime API answered ${String(next.status)} without an invocation`);
    const deadlineMs = Number(next.headers.get('lambda-runtime-deadline-ms'));
    await answer(`${base}/${requestId}`, async () =>
      handler(await next.json(), {
        awsRequestId: requestId,
        getRemainingTimeInMillis: () => Math.max(0, deadlineMs - Date.now()),
      }),
    );
  }
}

/** Runs one invocation and tells Lambda what came of it, in the shapes that its own runtimes use. */
async function answer(url: string, run: () => Promise<unknown>): Promise<void> {
  let path = 'response';
  let body: string;
  try {
    body = JSON.stringify((await run()) ?? null);
  } catch (error) {
    path = 'error';
    const known = error instanceof Error ? error : new Error(String(error));
    body = JSON.stringify({
      errorType: known.name,
      errorMessage: known.message,
      trace: (known.stack ?? '').split('\n').slice(0, mostStackLines),
    });
  }
  const told = await fetch(`${url}/${path}`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
  });
  await told.arrayBuffer(); // Else its connection stays taken.
}

/** The Runtime API is not what it should be. */
class OutriderRuntimeError extends OutriderError {
  override readonly name = ErrorName.BrokenInvariant;
}
