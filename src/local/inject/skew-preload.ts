// Preloaded (`node --import`) into programs whose clock is to be off. What counts from a start, such as timers and
// `performance.now()`, is as right as ever: a host with a wrong clock still counts seconds well.
import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';
import { aheadVariable, skewedClock } from './clock-skew.ts';

const aheadMs = Number(process.env[aheadVariable] ?? 0);
const trueNow = Date.now.bind(Date);
Date.now = () => trueNow() + aheadMs;
globalThis.Date = new Proxy(Date, {
  apply: (date) => new date(date.now()).toString(),
  construct: (date, given, target) =>
    Reflect.construct(date, given.length === 0 ? [date.now()] : given, target) as Date,
});
Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + aheadMs });

/** The same Node is on the same host. Other programs ask the machine itself. */
const { spawn } = childProcess;
const { flags, variables } = skewedClock(aheadMs);
childProcess.spawn = new Proxy(spawn, {
  apply: (start, self, given: Parameters<typeof spawn>) => {
    const [program, args, options] = given;
    if (program !== process.execPath || !Array.isArray(args)) return Reflect.apply(start, self, given);
    const env = { ...(options.env ?? process.env), ...variables };
    return Reflect.apply(start, self, [program, [...flags, ...(args as string[])], { ...options, env }]);
  },
});
syncBuiltinESMExports();
