import { Socket } from 'node:net';
import dynalite from 'dynalite';

// Started by dynalite.ts: Dynalite over connections that this process was born with. It listens nowhere.

const [path = '', connections = '0'] = process.argv.slice(2);
const FIRST_CONNECTION = 3;

const server = dynalite({ path, createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 });
// They are kept for good, however long nobody asks.
server.keepAliveTimeout = 0;
server.requestTimeout = 0;
server.headersTimeout = 0;
for (let index = 0; index < Number(connections); index++) {
  server.emit('connection', new Socket({ fd: FIRST_CONNECTION + index, readable: true, writable: true }));
}

// Whoever holds the other ends is gone.
process.stdin.once('end', () => process.exit(0)).resume();
process.once('SIGTERM', () => process.exit(0));
