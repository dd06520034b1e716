import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';

/** Servers of a stack whose addresses people put into their tools. */
export const serverNames = ['api', 'dynamodb', 'ecs', 'lambda', 'logs', 's3', 'states', 'sts'] as const;
export type ServerName = (typeof serverNames)[number];
export type Ports = Readonly<Partial<Record<ServerName, number>>>;

const fileName = 'ports.json';
const httpPort = 80;
const highestPort = 65_535;

/**
 * The ports that the servers of an earlier stack in this directory had, as far as nobody has them now: addresses that
 * were given to other tools then hold over a restart. Empty where there was none.
 */
export async function keptPorts(stateDir: string): Promise<Ports> {
  const text = await readFile(join(stateDir, fileName), 'utf8').catch(() => '{}');
  const kept = parsed(text);
  const found = await Promise.all(
    serverNames.map(async (name): Promise<readonly [ServerName, number][]> => {
      const port = kept[name];
      const isPort = typeof port === 'number' && Number.isInteger(port) && port > 0 && port <= highestPort;
      return isPort && (await isFree(port)) ? [[name, port]] : [];
    }),
  );
  return Object.fromEntries(found.flat());
}

/** Notes the ports of a stack that has started. Not being able to is no reason to fail. */
export async function keepPorts(
  stateDir: string,
  endpoints: Readonly<Record<ServerName, string>>,
): Promise<void> {
  // Addresses leave out the port of HTTP.
  const portOf = (name: ServerName): number => Number(new URL(endpoints[name]).port || httpPort);
  const ports = Object.fromEntries(serverNames.map((name) => [name, portOf(name)]));
  await writeFile(join(stateDir, fileName), `${JSON.stringify(ports)}\n`).catch(() => undefined);
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}

/** Whether something could listen on a port of the loopback interface just now. */
function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => {
      resolve(false);
    });
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      server.close(() => {
        resolve(true);
      });
    });
  });
}
