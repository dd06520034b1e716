import * as z from 'zod';
import { parseInput } from './invalid.ts';

/**
 * List prices in dollars: the one table of them, with the day on which they were looked up and the region that they hold
 * for. Lambda and Fargate on arm64, as they are deployed; Fargate on demand. Tasks on Spot are priced as on demand, too, since
 * what Spot costs changes by the day.
 *
 * Source of Fargate's on arm64: https://aws.amazon.com/fargate/pricing, "Linux/ARM"; of the address: https://aws.amazon.com/vpc/pricing.
 */
export const listPrices = {
  asOf: '2026-11-01',
  region: 'us-east-1',
  lambdaGbSecond: 0.0000133334,
  lambdaRequest: 0.2 / 1e6,
  fargateVcpuHour: 0.03238,
  fargateGbHour: 0.00356,
  /** The public IPv4 address of a task on Fargate, as those of the network that a deployment makes have one. */
  publicAddressHour: 0.005,
  dynamoWrite: 0.625 / 1e6,
  dynamoRead: 0.125 / 1e6,
  /** PUT, COPY, POST and LIST. */
  s3Put: 0.005 / 1e3,
  /** GET, HEAD and all others but deletions, which are free. */
  s3Get: 0.0004 / 1e3,
  stateTransition: 25 / 1e6,
  apiCall: 3.5 / 1e6,
  logGb: 0.5,
} as const;

const price = z
  .number('must be dollars')
  .min(0, 'must be dollars, 0 or more')
  .max(1e6, 'must be at most 1000000 dollars');

/** The list where tasks on Fargate have no public addresses. */
export const pricesWithoutAddresses: Prices = { ...listPrices, publicAddressHour: 0 };

/** Prices that differ from the list: any of them, and the day and region of whoever says so. */
export const priceOverridesSchema = z.strictObject({
  asOf: z.iso.date('must be a day such as "2026-11-01"').optional(),
  region: z.string().min(1).max(64).optional(),
  lambdaGbSecond: price.optional(),
  lambdaRequest: price.optional(),
  fargateVcpuHour: price.optional(),
  fargateGbHour: price.optional(),
  publicAddressHour: price.optional(),
  dynamoWrite: price.optional(),
  dynamoRead: price.optional(),
  s3Put: price.optional(),
  s3Get: price.optional(),
  stateTransition: price.optional(),
  apiCall: price.optional(),
  logGb: price.optional(),
});

type PriceName = Exclude<keyof typeof listPrices, 'asOf' | 'region'>;

/** A table of prices: the list, or what it was replaced by. */
export type Prices = Readonly<Record<PriceName, number>> & {
  readonly asOf: string;
  readonly region: string;
};

/** The list with what differs from it. Throws `InvalidInputError` that names the field and says what would be right. */
export function pricesWith(overrides: unknown): Prices {
  const given = parseInput(priceOverridesSchema, overrides);
  return { ...listPrices, ...given } as Prices;
}
