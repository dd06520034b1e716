import type { UncheckedJob } from '../../src/cli/prepare-inputs.ts';
import type { MemoryHost } from './memory-host.ts';

/** The spec of a prepared job, with the code that it carries on the host. */
export async function specOnHost(
  host: MemoryHost,
  prepared: UncheckedJob,
): Promise<ReturnType<UncheckedJob['specWith']>> {
  for (const { sha256, bytes } of prepared.carried) await host.put(`code/${sha256}`, bytes);
  const spec = prepared.specWith([]);
  const stages = spec.stages.map((stage) =>
    stage.code === undefined
      ? stage
      : { ...stage, code: { ...stage.code, s3: `s3://input/code/${stage.code.sha256}` } },
  );
  return { ...spec, stages };
}
