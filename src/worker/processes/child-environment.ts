type Environment = Readonly<Record<string, string | undefined>>;

/** What programs need to find their way on a machine. None of it tells who the worker is, or where its services are. */
const plainNames: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LANGUAGE',
  'TZ',
  'NODE_ENV',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_DIR',
  'SSL_CERT_FILE',
  'LD_LIBRARY_PATH',
]);
const plainPrefixes = ['LC_', 'MALLOC_'];

/**
 * What AWS's SDKs read to find region and services. Not the worker's own keys, which lead to the sessions of jobs; nor
 * the address of Lambda's Runtime API: whoever has it can take the next job's invocation.
 */
const serviceNames: ReadonlySet<string> = new Set([
  'AWS_REGION',
  'AWS_DEFAULT_REGION',
  'AWS_EC2_METADATA_DISABLED',
]);
const endpointPrefix = 'AWS_ENDPOINT_URL';

/** The variables of `env` that user code and programs may see whatever their job asks for. */
export const plainEnvironment = (env: Environment): Record<string, string> =>
  picked(env, (name) => plainNames.has(name) || plainPrefixes.some((prefix) => name.startsWith(prefix)));

/** The keys of a session. */
interface SessionKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
}

/** Variables by which an AWS SDK acts with the keys of a job's session; for stages that ask for credentials. */
export const credentialEnvironment = (env: Environment, keys: SessionKeys): Record<string, string> => ({
  ...picked(env, (name) => serviceNames.has(name) || name.startsWith(endpointPrefix)),
  AWS_ACCESS_KEY_ID: keys.accessKeyId,
  AWS_SECRET_ACCESS_KEY: keys.secretAccessKey,
  AWS_SESSION_TOKEN: keys.sessionToken,
});

function picked(env: Environment, isWanted: (name: string) => boolean): Record<string, string> {
  const found = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && isWanted(entry[0]),
  );
  return Object.fromEntries(found);
}
