import { fargateSizes, type Worker, workerSizes } from '../../contracts/job-spec.ts';

/** List prices, us-east-1, dollars, November 2026; arm64 Lambda, arm64-priced like x86 Fargate on demand. */
export const prices = {
  lambdaGbSecond: 0.0000133334,
  lambdaRequest: 0.2 / 1e6,
  fargateVcpuHour: 0.04048,
  fargateGbHour: 0.004445,
  dynamoWrite: 0.625 / 1e6,
  s3Put: 0.005 / 1e3,
  s3Get: 0.0004 / 1e3,
} as const;

/** Fargate bills at least a minute. */
const fargateMinimumMs = 60_000;

/** Requests of a typical attempt: claim, result, end and a few progress records; two reads and two writes. */
const attemptRequests = 6 * prices.dynamoWrite + 2 * prices.s3Put + 4 * prices.s3Get;

/** What one attempt costs at list prices, in dollars: its time on its worker and its requests. */
export function attemptDollars(worker: Worker, workerMs: number): number {
  if (worker.kind === 'lambda') {
    const gigabytes = workerSizes[worker.size] / 1024;
    return (workerMs / 1000) * gigabytes * prices.lambdaGbSecond + prices.lambdaRequest + attemptRequests;
  }
  const { vcpu, memoryMb } = fargateSizes[worker.size];
  const hours = Math.max(workerMs, fargateMinimumMs) / 3_600_000;
  return hours * (vcpu * prices.fargateVcpuHour + (memoryMb / 1024) * prices.fargateGbHour) + attemptRequests;
}
