import { jobSpecJsonSchema } from '../contracts/job-spec.ts';

// `npm run schema`: the JSON Schema of a job spec, for editors and other people's tools.
process.stdout.write(`${JSON.stringify(jobSpecJsonSchema(), null, 2)}\n`);
