import type { ForecastBasis, JobForecast, JobRecord } from '../contracts/records.ts';
import { formatCount, formatTime, plural } from './format.ts';

type Forecasted = Pick<JobRecord, 'state' | 'forecast' | 'deadlineAt'>;

/** The forecast of a job that goes on; what one that has ended was expected to do nobody asks. */
export const currentForecast = ({ state, forecast }: Forecasted): JobForecast | undefined =>
  state === 'submitted' || state === 'running' ? forecast : undefined;

/** Whole per cent, and never certainty where there is none: `<1%`, `97%`, `>99%`. */
export function formatProbability(probability: number | undefined): string {
  if (probability === undefined) return '-';
  if (probability > 0.995 && probability < 1) return '>99%';
  if (probability < 0.005 && probability > 0) return '<1%';
  return `${String(Math.round(probability * 100))}%`;
}

const bases: Readonly<Record<ForecastBasis, (runs: string) => string>> = {
  profile: (runs) => `by ${runs} of the job`,
  similar: (runs) => `by ${runs} of jobs like it`,
  'first-wave': () => 'by its own first tasks',
  nothing: () => 'nothing is known of the job yet',
};

/** What a running job is expected to come to, in one line: its end, P(deadline), slots, and what that rests on. */
export function describeForecast(job: Forecasted): string | undefined {
  const forecast = currentForecast(job);
  if (forecast === undefined) return undefined;
  const { basis, runs, expectedEndAt, slotsWanted } = forecast;
  const probability = job.deadlineAt === undefined ? undefined : forecast.probability;
  return [
    ...(expectedEndAt === undefined ? [] : [`ends ${formatTime(expectedEndAt)}`]),
    ...(probability === undefined ? [] : [`P(deadline) ${formatProbability(probability)}`]),
    ...(slotsWanted === undefined ? [] : [`wants ${plural(slotsWanted, 'slot')}`]),
    bases[basis](`${formatCount(runs)} earlier ${runs === 1 ? 'run' : 'runs'}`),
  ].join(', ');
}

/** Steps of P(deadline) that are worth a line of their own where nothing can be redrawn. */
const probabilitySteps = 10;

/** What of a forecast is worth a new line where it changes: its basis, what it asks for, and P(deadline) by tenths. */
export function forecastMark(job: Forecasted): string {
  const forecast = currentForecast(job);
  if (forecast === undefined) return '';
  const { basis, probability, slotsWanted } = forecast;
  const tenth = probability === undefined ? '' : Math.round(probability * probabilitySteps);
  return [basis, tenth, slotsWanted ?? '', job.deadlineAt ?? ''].join('/');
}
