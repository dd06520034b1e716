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
 * What AWS's SDKs read to find keys, region and services. Not the address of Lambda's Runtime API: whoever has it can
 * take the next job's invocation.
 */
const credentialNames: ReadonlySet<string> = new Set([
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI',
  'AWS_CONTAINER_CREDENTIALS_FULL_URI',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN',
  'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
  'AWS_REGION',
  'AWS_DEFAULT_REGION',
  'AWS_EC2_METADATA_DISABLED',
]);
const endpointPrefix = 'AWS_ENDPOINT_URL';

/** The variables of `env` that user code and programs may see whatever their job asks for. */
export const plainEnvironment = (env: Environment): Record<string, string> =>
  picked(env, (name) => plainNames.has(name) || plainPrefixes.some((prefix) => name.startsWith(prefix)));

/** The variables of `env` by which an AWS SDK acts as this process; for stages that ask for credentials. */
export const credentialEnvironment = (env: Environment): Record<string, string> =>
  picked(env, (name) => credentialNames.has(name) || name.startsWith(endpointPrefix));

function picked(env: Environment, isWanted: (name: string) => boolean): Record<string, string> {
  const found = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && isWanted(entry[0]),
  );
  return Object.fromEntries(found);
}
