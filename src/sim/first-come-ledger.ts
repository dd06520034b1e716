import { type GrantContext, RuledCapacityLedger } from '../app/capacity-ledger.ts';
import type { CloneAdmission, CloneRequest, CloneTerms } from '../core/capacity/clone-admission.ts';
import type { JobId } from '../contracts/ids.ts';

/** What a job says without what runs of it: the ledger shares slots out among those that say so. */
const unshared = <Context extends GrantContext>(context: Context): Context => ({
  ...context,
  live: undefined,
});

/** Grants slots first come, first served, as clusters of the papers do, where production's shares them max-min fairly. */
export class FirstComeLedger extends RuledCapacityLedger {
  override resize(jobId: JobId, wanted: number, context: GrantContext): Promise<number> {
    return super.resize(jobId, wanted, unshared(context));
  }

  override admitBackups(
    jobId: JobId,
    asked: { readonly wanted: number; readonly cap: number },
    context: GrantContext,
  ): Promise<number> {
    return super.admitBackups(jobId, asked, unshared(context));
  }

  override admitClones(
    jobId: JobId,
    request: CloneRequest,
    context: GrantContext & CloneTerms,
  ): Promise<CloneAdmission> {
    return super.admitClones(jobId, request, unshared(context));
  }
}
