// One file of tests, since loading the CDK takes longer than all of them.
import './api.suite.ts';
import './deployments.suite.ts';
import './fargate.suite.ts';
import './functions.suite.ts';
import './grants.suite.ts';
import './keys.suite.ts';
import './languages.suite.ts';
import './parameters.suite.ts';
import './state-machine.suite.ts';
import './storage.suite.ts';
import './synthesis.suite.ts';
import './watch.suite.ts';
