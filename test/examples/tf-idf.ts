// The words that tell one document from the others: frequency in it, over the share of documents that have the word.
import { job, read } from 'outrider';

const words = read.text().flatMap((line, { input }) => {
  const document = input?.name ?? '';
  return (line.toLowerCase().match(/[a-z]+/g) ?? []).map((word) => ({ document, word }));
});

const count = { zero: () => 0, add: (sum: number) => sum + 1, merge: (a: number, b: number) => a + b };

const frequencies = words
  .keyBy(({ document, word }) => [word, document])
  .aggregate(count)
  .map(([[word, document], times]) => ({ word, document, times }));

const documentsWith = frequencies.keyBy(({ word }) => word).aggregate(count);

const documents = frequencies
  .keyBy(({ document }) => document)
  .reduce((one) => one)
  .keyBy(() => 'all')
  .aggregate(count);

const scores = frequencies
  .keyBy(({ word }) => word)
  .join(documentsWith.keyBy(([word]) => word))
  .map(([word, [{ document, times }, [, having]]]) => ({ word, document, times, having }))
  .keyBy(() => 'all')
  .join(
    documents.keyBy(([all]) => all),
    { broadcast: true },
  )
  .map(([, [{ word, document, times, having }, [, total]]]) => ({
    document,
    word,
    score: times * Math.log(total / having),
  }));

export default job(
  'tf-idf',
  scores
    .groupBy(({ document }) => document)
    .flatMap(([document, all]) =>
      all
        .sort((a, b) => b.score - a.score || (a.word < b.word ? -1 : 1))
        .slice(0, 5)
        .map(({ word, score }) => ({ document, word, score: score.toFixed(6) })),
    )
    .sortBy(({ document }) => document, { parts: 1 })
    .write.csv(['document', 'word', 'score']),
);
