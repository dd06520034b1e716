import { Gate } from '../../lib/gate.ts';
import { addMiddleware, type CountableClient } from './count-requests.ts';

/**
 * Lets so many requests of a client be under way at once; the others wait their turn. A client's agent bounds them as well, but the
 * handler's timers begin before it gives a connection: so each wait for one of our own would be taken for a service's silence.
 *
 * Inside of the SDK's retries, so that no pause between two tries keeps a place.
 */
export function boundRequests<Client extends CountableClient>(client: Client, limit: number): Client {
  const gate = new Gate(limit);
  addMiddleware(client, (next) => (args) => gate.run(() => next(args)), {
    ...{ step: 'deserialize', name: 'outriderBound', priority: 'high', override: true },
  });
  return client;
}
