import * as z from 'zod';
import { attemptRecordSchema } from '../adapters/aws/attempt-item.ts';
import { jobRecordSchema } from '../adapters/aws/job-item.ts';
import { deadlineRequestSchema, submitRequestSchema } from '../contracts/api.ts';
import { allocationReasons } from '../contracts/decision-log.ts';
import { ErrorName } from '../contracts/errors.ts';
import { planRequestSchema, planResponseSchema } from '../contracts/plans.ts';
import { limits } from '../contracts/limits.ts';

type Document = Readonly<Record<string, unknown>>;

const cursor = z
  .string()
  .optional()
  .describe('Where the next page begins: give it as ?cursor=. Absent: there is none.');

/** What is sent and answered, by its name in the document. */
const schemas: Readonly<Record<string, z.ZodType>> = {
  SubmitRequest: submitRequestSchema,
  DeadlineRequest: deadlineRequestSchema,
  PlanRequest: planRequestSchema,
  PlanResponse: planResponseSchema,
  Job: jobRecordSchema,
  Attempt: attemptRecordSchema,
  SubmitResponse: z.object({
    jobId: z.string(),
    started: z
      .boolean()
      .describe('False where the client token was known: this is the job that it stands for.'),
  }),
  ListResponse: z.object({
    jobs: z.array(z.unknown()),
    cursor,
    unreadable: z
      .array(z.object({ jobId: z.string(), message: z.string() }))
      .optional()
      .describe('Jobs of the page whose records cannot be read; absent: none.'),
  }),
  AttemptsResponse: z.object({
    attempts: z.array(z.unknown()),
    cursor,
    unreadable: z
      .int()
      .optional()
      .describe('How many more there are whose records cannot be read; absent: none.'),
  }),
  AllocationsResponse: z.object({
    allocations: z.array(
      z.object({
        at: z.int().describe('Milliseconds since 1970, UTC.'),
        slots: z.int(),
        smoothed: z.number(),
        reason: z.enum(allocationReasons),
        facts: z.looseObject({}).describe('The numbers that it was decided by.'),
      }),
    ),
  }),
  JournalResponse: z.object({
    pieces: z.array(
      z.object({
        epoch: z.int().describe("Which of the job's schedulers has written it."),
        number: z.int().describe('Which of its pieces it is, from 0.'),
        text: z.string().describe('In ASCII. The pieces of an epoch laid end to end are lines of JSON.'),
      }),
    ),
    cursor,
  }),
  Error: z.object({
    error: z.enum([...Object.values(ErrorName), 'InternalError', 'TooManyRequests', 'ServiceUnavailable']),
    message: z.string(),
    field: z
      .string()
      .optional()
      .describe('Path of the wrong field from the root of the body, where one is wrong.'),
  }),
};

const reference = (name: string): Document => ({ $ref: `#/components/schemas/${name}` });

/** One schema of the document; its own definitions lie below it. */
function componentOf(name: string, schema: z.ZodType): Document {
  const made = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema !== jobRecordSchema.shape.counters) return;
      Object.assign(jsonSchema, { type: 'object', additionalProperties: { type: 'number' } });
    },
  });
  const text = JSON.stringify({ ...made, $schema: undefined }).replaceAll(
    '"#/$defs/',
    `"#/components/schemas/${name}/$defs/`,
  );
  return JSON.parse(text) as Document;
}

function components(): Document {
  const made = Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [name, componentOf(name, schema)]),
  );
  return {
    ...made,
    ListResponse: withItems(made['ListResponse'], 'jobs', 'Job'),
    AttemptsResponse: withItems(made['AttemptsResponse'], 'attempts', 'Attempt'),
  };
}

/** A list of what has a name of its own in the document. */
function withItems(schema: Document | undefined, field: string, name: string): Document {
  const properties = schema?.['properties'] as Document;
  return { ...schema, properties: { ...properties, [field]: { type: 'array', items: reference(name) } } };
}

const jsonOf = (name: string): Document => ({ 'application/json': { schema: reference(name) } });
const answered = (description: string, name: string): Document => ({ description, content: jsonOf(name) });
const problem = (description: string): Document => answered(description, 'Error');

/** What any route may answer. */
const always: Readonly<Record<string, Document>> = {
  403: {
    description: 'The request is not signed by a caller who may make it; the answer is API Gateway’s own.',
  },
  429: problem('Too many requests at once: again after the seconds of Retry-After.'),
  500: problem('A fault of the system.'),
  502: problem('The deployment lacks a right.'),
  503: problem('A store is away or has no room now: again after the seconds of Retry-After.'),
};
const noJob = { 404: problem('There is no such job.') };
const unreadable = { 409: problem('The record of the job cannot be read.') };
const badBody = {
  400: problem('The body is wrong; `field` says where.'),
  413: problem(`The body is longer than ${String(limits.bodyBytes)} bytes.`),
  415: problem('The body is not sent as application/json.'),
};
const badPage = { 400: problem('`limit` or `cursor` is wrong.') };

const jobId = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'The id of a job, as its submission was answered.',
  schema: { type: 'string' },
};
const pageAfter: Document = {
  ...{ name: 'cursor', in: 'query', description: 'Of the page before.', schema: { type: 'string' } },
};

const pagesOf = (most: number): readonly Document[] => [
  {
    name: 'limit',
    in: 'query',
    description: 'Items of a page at most.',
    schema: { type: 'integer', minimum: 1, maximum: most },
  },
  pageAfter,
];

const bodyOf = (name: string): Document => ({ required: true, content: jsonOf(name) });

/** The routes by method and path, as `functions/api/routes.ts` serves them. */
export const operations: Readonly<Record<string, Document>> = {
  'POST /jobs': {
    operationId: 'submitJob',
    summary: 'Submits a job. Send a client token, and a request whose answer was lost may be sent again.',
    requestBody: bodyOf('SubmitRequest'),
    responses: {
      200: answered('The client token stands for this job already.', 'SubmitResponse'),
      201: answered('The job was started.', 'SubmitResponse'),
      ...badBody,
      409: problem('The output is another job’s, or the client token stands for another spec.'),
    },
  },
  'POST /plans': {
    operationId: 'planJob',
    summary:
      'Foretells what a job would take and cost on each number of slots, and on what that rests. Starts nothing, and refuses whatever a submission would refuse for its spec alone.',
    requestBody: bodyOf('PlanRequest'),
    responses: {
      200: answered('The forecast; without allocations where nothing is known.', 'PlanResponse'),
      ...badBody,
    },
  },
  'GET /jobs': {
    operationId: 'listJobs',
    summary: 'Lists jobs, newest first.',
    parameters: pagesOf(limits.jobsPerPage),
    responses: { 200: answered('A page of jobs.', 'ListResponse'), ...badPage },
  },
  'GET /jobs/{id}': {
    operationId: 'getJob',
    summary: 'Tells of one job: its state, stages, attempts, costs and output.',
    parameters: [jobId],
    responses: { 200: answered('The job.', 'Job'), ...noJob, ...unreadable },
  },
  'GET /jobs/{id}/attempts': {
    operationId: 'listAttempts',
    summary: 'Lists the attempts of a job by launch.',
    parameters: [jobId, ...pagesOf(limits.attemptsPerPage)],
    responses: {
      200: answered('A page of attempts.', 'AttemptsResponse'),
      ...badPage,
      ...noJob,
      ...unreadable,
    },
  },
  'GET /jobs/{id}/allocations': {
    operationId: 'listAllocations',
    summary: 'Lists the slots that a job has asked to be its own for its deadline, by time.',
    parameters: [jobId],
    responses: {
      200: answered('What the job has asked for.', 'AllocationsResponse'),
      ...noJob,
      ...unreadable,
    },
  },
  'GET /jobs/{id}/journal': {
    operationId: 'readJournal',
    summary: 'Reads what the schedulers of a job have learned and decided, tick by tick.',
    parameters: [jobId, pageAfter],
    responses: {
      200: answered('A page of the journal.', 'JournalResponse'),
      ...badPage,
      ...noJob,
      ...unreadable,
    },
  },
  'POST /jobs/{id}/cancel': {
    operationId: 'cancelJob',
    summary: 'Asks a job to end; it ends soon after.',
    parameters: [jobId],
    responses: {
      200: answered('The job as it is when the wish is recorded.', 'Job'),
      ...noJob,
      409: problem('The job has ended, or its record cannot be read.'),
    },
  },
  'PUT /jobs/{id}/deadline': {
    operationId: 'setDeadline',
    summary:
      'Sets the time by which a job is to end: a length of time from now, an instant, or "none" for no deadline.',
    parameters: [jobId],
    requestBody: bodyOf('DeadlineRequest'),
    responses: {
      200: answered('The job with its deadline.', 'Job'),
      ...badBody,
      ...noJob,
      409: problem('The job has ended, or its record cannot be read.'),
    },
  },
};

/**
 * The REST API as an OpenAPI 3.1 document: what is sent and answered comes from the schemas by which it is checked. Requests
 * are signed with AWS Signature Version 4 for the service `execute-api`.
 */
export function openApiDocument(version: string): Document {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [route, operation] of Object.entries(operations)) {
    const [method = '', path = ''] = route.split(' ');
    const responses = { ...(operation['responses'] as Document), ...always };
    paths[path] = { ...paths[path], [method.toLowerCase()]: { ...operation, responses } };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Outrider',
      version,
      description: 'Submits and watches data-parallel jobs.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      {
        url: '{endpoint}',
        description: 'The ApiUrl of the outputs of a deployment, or what "outrider local" prints.',
        variables: { endpoint: { default: 'http://127.0.0.1:8080/v1' } },
      },
    ],
    security: [{ sigv4: [] }],
    paths,
    components: {
      schemas: components(),
      securitySchemes: {
        sigv4: {
          type: 'apiKey',
          name: 'Authorization',
          in: 'header',
          description:
            'AWS Signature Version 4, service execute-api, with credentials that may invoke the API.',
        },
      },
    },
  };
}
