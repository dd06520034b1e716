import { describe, expect, it } from 'vitest';
import {
  listSetting,
  numberSetting,
  subnetsSetting,
  textSetting,
  workerFunctionsSetting,
  zoneIdsSetting,
} from '../../functions/shared/settings.ts';
import { Setting } from '../../src/contracts/settings.ts';

describe('settings', () => {
  it('are read from the environment', () => {
    const env = {
      [Setting.table]: 'table',
      [Setting.totalSlots]: '7',
      [Setting.subnets]: 'a,b,',
      [Setting.workerFunctions]: '{"small":"s","medium":"m","large":"l","xlarge":"x"}',
    };
    expect(textSetting(env, Setting.table)).toBe('table');
    expect(numberSetting(env, Setting.totalSlots)).toBe(7);
    expect(listSetting(env, Setting.subnets)).toEqual(['a', 'b']);
    expect(workerFunctionsSetting(env)).toEqual({ small: 's', medium: 'm', large: 'l', xlarge: 'x' });
  });

  it('tell the zone of each subnet, or of none', () => {
    const env = { [Setting.subnets]: 'a,b' };
    expect(subnetsSetting(env)).toEqual([{ id: 'a' }, { id: 'b' }]);
    expect(subnetsSetting({ ...env, [Setting.subnetZones]: 'us-east-1a,us-east-1b' })).toEqual([
      { id: 'a', zone: 'us-east-1a' },
      { id: 'b', zone: 'us-east-1b' },
    ]);
  });

  it('tell the ids of zones by their names, and nothing by what is none', () => {
    expect([...zoneIdsSetting({})]).toEqual([]);
    expect([
      ...zoneIdsSetting({ [Setting.zoneIds]: 'us-east-1a=use1-az4,us-east-1b=use1-az6,,x,y=z' }),
    ]).toEqual([
      ['us-east-1a', 'use1-az4'],
      ['us-east-1b', 'use1-az6'],
    ]);
  });

  it.each([
    ['is missing', () => textSetting({}, Setting.table), /OUTRIDER_TABLE is missing/],
    [
      'is no number',
      () => numberSetting({ [Setting.tickMs]: 'x' }, Setting.tickMs),
      /OUTRIDER_TICK_MS must be a whole number/,
    ],
    [
      'lacks a size',
      () => workerFunctionsSetting({ [Setting.workerFunctions]: '{}' }),
      /OUTRIDER_WORKER_FUNCTIONS lacks "small"/,
    ],
    [
      'names too few zones',
      () => subnetsSetting({ [Setting.subnets]: 'a,b', [Setting.subnetZones]: 'us-east-1a' }),
      /OUTRIDER_SUBNET_ZONES must name the zone of each subnet/,
    ],
  ])('stop the function where one %s', (_what, read, message) => {
    expect(read).toThrow(message);
  });
});
