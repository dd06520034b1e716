import tseslint from 'typescript-eslint';

/** Rooms and what they may import: style guide §2 and design §9, as forbidden patterns. */
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

const outside = ['@aws-sdk/*', '@smithy/*', 'aws-cdk-lib*', 'node:*'];
const rooms = (...names) => names.map((name) => `**/${name}/**`);

export default tseslint.config(
  { ignores: ['node_modules/', 'cdk.out/', '.outrider/', 'output/', 'coverage/'] },
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
  wall(
    ['src/contracts/**/*.ts'],
    [
      ...outside,
      ...rooms(
        'lib',
        'core',
        'ports',
        'app',
        'adapters',
        'worker',
        'operators',
        'sim',
        'local',
        'cli',
        'report',
      ),
    ],
    ambient,
  ),
  wall(
    ['src/lib/**/*.ts'],
    [
      ...outside,
      ...rooms(
        'contracts',
        'core',
        'ports',
        'app',
        'adapters',
        'worker',
        'operators',
        'sim',
        'local',
        'cli',
        'report',
      ),
    ],
    ambient,
  ),
  wall(
    ['src/core/**/*.ts'],
    [
      ...outside,
      ...rooms('ports', 'app', 'adapters', 'worker', 'operators', 'sim', 'local', 'cli', 'report'),
    ],
    ambient,
  ),
  wall(
    ['src/ports/**/*.ts'],
    [...outside, ...rooms('app', 'adapters', 'worker', 'operators', 'sim', 'local', 'cli', 'report')],
    ambient,
  ),
  wall(
    ['src/app/**/*.ts'],
    [...outside, ...rooms('adapters', 'worker', 'operators', 'sim', 'local', 'cli', 'report')],
    ambient,
  ),
  wall(
    ['src/sim/**/*.ts'],
    [
      ...outside,
      '**/adapters/aws/**',
      '**/adapters/node/**',
      ...rooms('worker', 'operators', 'local', 'cli', 'report'),
    ],
    ambient,
  ),
  wall(
    ['src/adapters/memory/**/*.ts'],
    [
      ...outside,
      '**/adapters/aws/**',
      '**/adapters/node/**',
      ...rooms('app', 'worker', 'operators', 'sim', 'local', 'cli', 'report'),
    ],
    ambient,
  ),
  wall(
    ['src/adapters/aws/**/*.ts'],
    [
      '**/adapters/memory/**',
      '**/adapters/node/**',
      'aws-cdk-lib*',
      ...rooms('app', 'worker', 'operators', 'sim', 'local', 'cli', 'report'),
    ],
  ),
  wall(
    ['src/adapters/node/**/*.ts'],
    [
      '@aws-sdk/*',
      'aws-cdk-lib*',
      '**/adapters/memory/**',
      '**/adapters/aws/**',
      ...rooms('app', 'worker', 'operators', 'sim', 'local', 'cli', 'report'),
    ],
  ),
  wall(
    ['src/worker/**/*.ts'],
    [
      '@aws-sdk/*',
      '@smithy/*',
      'aws-cdk-lib*',
      ...rooms('app', 'adapters', 'operators', 'sim', 'local', 'cli', 'report'),
    ],
  ),
  wall(
    ['src/operators/**/*.ts'],
    [
      '@aws-sdk/*',
      '@smithy/*',
      'aws-cdk-lib*',
      ...rooms('app', 'adapters', 'core', 'ports', 'sim', 'local', 'cli', 'report'),
    ],
  ),
  wall(
    ['src/local/**/*.ts'],
    ['aws-cdk-lib*', ...rooms('adapters', 'app', 'core', 'worker', 'operators', 'sim', 'cli', 'report')],
  ),
  wall(['src/cli/**/*.ts', 'src/report/**/*.ts'], ['aws-cdk-lib*']),
  wall(
    ['cdk/**/*.ts'],
    [
      '@aws-sdk/*',
      ...rooms('app', 'core', 'ports', 'adapters', 'worker', 'operators', 'sim', 'local', 'cli', 'report'),
    ],
  ),
  wall(
    ['functions/*/handler.ts', 'functions/*/main.ts', 'functions/api/*.ts'],
    [
      '@aws-sdk/*',
      'aws-cdk-lib*',
      ...rooms('adapters', 'core', 'operators', 'sim', 'local', 'cli', 'report'),
    ],
  ),
  wall(['functions/shared/**/*.ts'], ['aws-cdk-lib*', ...rooms('sim', 'local', 'cli', 'report')]),
  {
    // A suite is one long call of describe; its tests are what must be short.
    files: ['test/**/*.ts'],
    rules: {
      'max-lines-per-function': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
  { files: ['**/*.config.{js,ts}'], rules: { 'no-restricted-exports': 'off' } },
  { files: ['**/*.js'], ...tseslint.configs.disableTypeChecked },
);
