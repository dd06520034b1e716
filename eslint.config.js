import tseslint from 'typescript-eslint';

const allRooms = [
  'contracts',
  'lib',
  'core',
  'ports',
  'app',
  'adapters',
  'worker',
  'operators',
  'dataflow',
  'sim',
  'traces',
  'experiments',
  'local',
  'cli',
  'report',
  'packaging',
];

/** Patterns that forbid every room but these. */
const only = (...allowed) =>
  allRooms.filter((room) => !allowed.includes(room)).map((room) => `**/${room}/**`);

/** Files and what they may not import: style guide §2 and design §9. */
const wall = (files, patterns, extra = {}) => ({
  files,
  rules: {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      { patterns: [{ group: patterns, message: 'This room may not import that one.' }] },
    ],
    ...extra,
  },
});

const ambient = {
  'no-restricted-globals': [
    'error',
    'process',
    'crypto',
    'setTimeout',
    'setInterval',
    'setImmediate',
    'performance',
    'fetch',
  ],
  'no-restricted-properties': [
    'error',
    { object: 'Date', property: 'now', message: 'Pass now.' },
    { object: 'Math', property: 'random', message: 'Pass a seeded Rng.' },
  ],
  'no-restricted-syntax': [
    'error',
    { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: 'Pass now.' },
  ],
};

const clouds = ['@aws-sdk/*', '@smithy/*', 'aws-cdk-lib*'];
const outside = [...clouds, 'node:*'];

export default tseslint.config(
  { ignores: ['node_modules/', 'cdk.out/', 'dist/', '.outrider/', 'output/', 'coverage/'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['*.js', 'src/cli/*.js'] },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      'max-lines': ['error', { max: 400, skipBlankLines: false, skipComments: false }],
      'max-lines-per-function': ['error', { max: 60 }],
      'no-restricted-exports': [
        'error',
        {
          restrictDefaultExports: {
            direct: true,
            named: true,
            defaultFrom: true,
            namedFrom: true,
            namespaceFrom: true,
          },
        },
      ],
      eqeqeq: 'error',
    },
  },
  wall(['src/contracts/**/*.ts'], [...outside, ...only('contracts')], ambient),
  wall(['src/lib/**/*.ts'], [...outside, ...only('lib')], ambient),
  wall(['src/core/**/*.ts'], [...outside, ...only('core', 'contracts', 'lib')], ambient),
  wall(['src/ports/**/*.ts'], [...outside, ...only('ports', 'core', 'contracts')], ambient),
  wall(['src/app/**/*.ts'], [...outside, ...only('app', 'core', 'ports', 'contracts', 'lib')], ambient),
  wall(
    ['src/sim/**/*.ts'],
    [
      ...outside,
      '**/adapters/aws/**',
      '**/adapters/node/**',
      ...only('sim', 'app', 'core', 'ports', 'adapters', 'contracts', 'lib'),
    ],
    ambient,
  ),
  wall(
    ['src/adapters/memory/**/*.ts'],
    [...outside, '**/aws/**', '**/node/**', ...only('adapters', 'ports', 'core', 'contracts', 'lib')],
    ambient,
  ),
  wall(
    ['src/adapters/aws/**/*.ts'],
    ['aws-cdk-lib*', '**/memory/**', '**/node/**', ...only('adapters', 'ports', 'core', 'contracts', 'lib')],
  ),
  wall(
    ['src/adapters/node/**/*.ts'],
    [
      '@aws-sdk/*',
      'aws-cdk-lib*',
      '**/memory/**',
      '**/aws/**',
      ...only('adapters', 'ports', 'contracts', 'lib'),
    ],
  ),
  wall(['src/worker/**/*.ts'], [...clouds, ...only('worker', 'ports', 'core', 'contracts', 'lib')]),
  wall(['src/operators/**/*.ts'], [...clouds, ...only('operators', 'worker', 'contracts', 'lib')]),
  wall(['src/dataflow/**/*.ts'], [...clouds, ...only('dataflow', 'worker', 'contracts', 'lib')]),
  wall(['src/traces/**/*.ts'], [...clouds, ...only('traces', 'contracts', 'lib')]),
  wall(
    ['src/experiments/**/*.ts'],
    [...clouds, ...only('experiments', 'sim', 'core', 'traces', 'contracts', 'lib')],
  ),
  wall(['src/local/**/*.ts'], ['aws-cdk-lib*', ...only('local', 'contracts', 'lib')]),
  wall(['src/cli/**/*.ts', 'src/report/**/*.ts'], ['aws-cdk-lib*']),
  wall(['cdk/**/*.ts'], ['@aws-sdk/*', ...only('contracts', 'lib')]),
  wall(
    ['functions/*/handler.ts', 'functions/*/main.ts', 'functions/api/*.ts'],
    [...clouds, ...only('app', 'ports', 'worker', 'contracts')],
  ),
  wall(
    ['functions/shared/**/*.ts'],
    ['aws-cdk-lib*', '**/sim/**', '**/local/**', '**/cli/**', '**/report/**'],
  ),
  {
    // A suite is one long call of describe; its tests are what must be short.
    files: ['test/**/*.ts'],
    rules: {
      'max-lines-per-function': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
  // What a user writes: a job is the default export of its file.
  { files: ['test/examples/*.ts'], rules: { 'no-restricted-exports': 'off' } },
  { files: ['**/*.config.{js,ts}'], rules: { 'no-restricted-exports': 'off' } },
  { files: ['**/*.js'], ...tseslint.configs.disableTypeChecked },
);
