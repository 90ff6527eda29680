#!/usr/bin/env node
// What Hugging Face's library makes of texts by each component of tokenizer.json:
//
//   components_fixture.js LIBRARY OUT
//
// LIBRARY is the folder of npm's package tokenizers (tools/tokenizers fetches it). OUT is fixture/components.json:
// {"base": tokenizer, "cases": [{"name", "patch", "texts": [[text, ids, decoded], ...]}]}; a case's tokenizer is
// the base, or a file beside OUT, with the members of the patch in it. The base's model makes a token of each
// byte, and ends each word by "</w>", so ids show what the text was normalized to and where it was cut.
'use strict';
const fs = require('fs');
const path = require('path');

const vocab = {};
for (let byte = 0; byte < 256; ++byte) vocab[`<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`] = byte;
const special = (id, content, more = {}) =>
  ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...more });
const model = (more = {}) => ({ type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null,
  end_of_word_suffix: '</w>', fuse_unk: false, byte_fallback: true, ignore_merges: false, vocab, merges: [], ...more });
const base = { version: '1.0', truncation: null, padding: null, added_tokens: [special(256, '</s>')],
  normalizer: null, pre_tokenizer: null, post_processor: null,
  decoder: { type: 'Sequence', decoders: [{ type: 'ByteFallback' }, { type: 'Fuse' }] }, model: model() };

const TEXTS = ['', ' ', 'a', '  Hello,  World! ', 'it\'s 12345 x-y  z.', 'line\r\n\r\n\tnext \n', 'É é e\u0301\u0327 ﬁ ½ ｶﾞ Å 한 한',
  'İstanbul ΣΑΣ Straße ǅ', '日本語とEnglish混在。', 'a\u00a0b\u2003c\u3000d\u0085e\u180ef\u200bg\ufeffh\u2028i', '\u0000\u0007x\u007fy\u008fz\u009f',
  '▁mark▁ ▁▁ x', '٣٤٥ ½ Ⅻ ² १२', '👨‍👩‍👧 👍🏽 🇩🇪', 'snake_case camelCase don\'t CAN\'T', '---', '--a--b', 'x</s>y </s> z',
  'naïve café Ελληνικά', 'नमस्ते दुनिया', 'a.b,c!d?e;f:g(h)i[j]k{l}m"n\'o`p~q@r#s$t%u^v&w*x+y=z|<>/\\', '\u0301start', 'x'.repeat(70)];

const seq = (kind, list) => ({ type: 'Sequence', [kind]: list });
const rex = (pattern, behavior = 'Isolated', invert = false) =>
  ({ type: 'Split', pattern: { Regex: pattern }, behavior, invert });
const str = (pattern, behavior, invert = false) => ({ type: 'Split', pattern: { String: pattern }, behavior, invert });
const bytes = (add_prefix_space, use_regex) => ({ type: 'ByteLevel', add_prefix_space, trim_offsets: true, use_regex });

// SentencePiece's table of these rules, in hexadecimal: FB01 to 66 69, FF21 to 41, 3000 to 20, 65 301 to E9, 30AB 3099
// to 30AC, FF76 FF9E to 30AC, FF76 to 30AB, 2460 to 31, 337F to 682A 5F0F 4F1A 793E, 212B to C5, 41 30A to C5, 200B to 20,
// 1F468 200D 1F469 to 2665, E9 to E9, and B and AD to nothing.
const CHARSMAP = [
  'AAQAAAAoAAALDQAAAAAAgMw0AgCKBQAACgAAgMwAAgCBPQAADQAAgK0tAACpCQAAgDACAIsFAAABAACAqy0AAISoAgCgBQAAAwAAgIB9AACrlA',
  'MAgBgCAOMAAgCCuAIAglgCAJkNAACN7AIAkagCABgAAIAcAACAvwUAAIEFAAAHAACArPwCAKENAAAFAACAFAAAgL50AgC2GQAA4jwCAJ7xAACf',
  'TAIAgCACAJGkAgCovAMAjcQDAPBwAgCfQAIAkdACALzAAgC9iAIAqQUAABAAAIA1AAAANAAAADcAAAA2AAAAOQAAADgAAAA7AAAAOgAAAD0AAA',
  'A8AAAAPwAAAD4AAABBAAAAQAAAAEMAAABCAAAARQAAAEQAAABHAAAARgAAAEkAAABIAAAASwAAAEEQAgBNAAAATAAAAE8AAABOAAAAUQAAAFAA',
  'AABTAAAAUgAAAFUAAABUAAAAVwAAAFYAAABZAAAAWAAAAFsAAABaAAAAXQAAAFwAAABfAAAAXgAAAGEAAABgAAAAYwAAAGIAAABlAAAAZAAAAG',
  'cAAABmAAAAaQAAAGgAAABrAAAAagAAAG0AAABsAAAAbwAAAGWUAgBxAAAAcAAAAHMAAAByAAAAdQAAAHQAAAB3AAAAdgAAAHkAAAB4AAAAewAA',
  'AHoAAAB9AAAAfAAAAH8AAAB+AAAAgQAAAIAAAACDAAAAggAAAIUAAACEAAAAhwAAAIYAAACJAAAAiAAAAIsAAACKAAAAjQAAAIwAAACPAAAAjg',
  'AAAJEAAACQAAAAkwAAAJIAAACVAAAAlAAAAJcAAACWAAAAmQAAAJgAAACbAAAAmgAAAJ0AAACcAAAAnwAAAJ4AAAChAAAAoAAAAKMAAACiAAAA',
  'pQAAAKQAAACnAAAApgAAAKkAAACoAAAAqwAAAKoAAACtAAAArAAAAK8AAACuAAAAsQAAALAAAACzAAAAsgAAALUAAAC0AAAAtwAAALYAAAC5AA',
  'AAuAAAALsAAAC6AAAAvQAAALwAAAC/AAAAvgAAAMEAAADAAAAAwwAAAMIAAADFAAAAxAAAAMcAAADGAAAAwrABAMOoAQDLAAAAygAAAO9YAQDM',
  'AAAAzwAAAM4AAADRAAAA0AAAANMAAADSAAAA1QAAANQAAADXAAAA1gAAANkAAADYAAAA2wAAANoAAADdAAAA3AAAAN8AAADeAAAA4QAAAOAAAA',
  'DjAAAA4gAAAOUAAADvpAEA5wAAAOYAAADijAEA4/QBAOsAAADqAAAA7QAAAOwAAADvAAAA7gAAAPEAAADwAAAA8wAAAPIAAAD1AAAA9AAAAPcA',
  'AAD2AAAA+QAAAPgAAADwNAEA+gAAAP0AAAD8AAAA/wAAAP4AAAAAIAAxAEEAZmkAw4UAw6kA4pmlAOOCqwDjgqwA5qCq5byP5Lya56S+AA==',
].join('');

const cases = [];
const normalizer = (name, value, texts = TEXTS) => cases.push({ name, patch: { normalizer: value }, texts });
const pre = (name, value, texts = TEXTS) => cases.push({ name, patch: { pre_tokenizer: value }, texts });

for (const type of ['NFC', 'NFD', 'NFKC', 'NFKD', 'Lowercase', 'StripAccents', 'Nmt', 'ByteLevel']) normalizer(type, { type });
normalizer('NFD and StripAccents', seq('normalizers', [{ type: 'NFD' }, { type: 'StripAccents' }]));
for (const [strip_left, strip_right] of [[true, true], [true, false], [false, true], [false, false]])
  normalizer(`Strip ${strip_left} ${strip_right}`, { type: 'Strip', strip_left, strip_right });
normalizer('Prepend', { type: 'Prepend', prepend: '▁' });
normalizer('Replace String', { type: 'Replace', pattern: { String: ' ' }, content: '▁' });
normalizer('Replace Regex', { type: 'Replace', pattern: { Regex: '\\s{2,}|[aeiou]' }, content: '<>' });
normalizer('Replace Regex empty', { type: 'Replace', pattern: { Regex: 'x*' }, content: '-' });
normalizer('Sequence', seq('normalizers', [{ type: 'Prepend', prepend: '▁' }, { type: 'Replace', pattern: { String: ' ' }, content: '▁' }]));
normalizer('Sequence of none', seq('normalizers', []));
for (const [clean_text, handle_chinese_chars, strip_accents, lowercase] of
  [[true, true, null, true], [false, true, false, true], [true, false, true, false], [false, false, null, false]])
  normalizer(`BertNormalizer ${clean_text} ${handle_chinese_chars} ${strip_accents} ${lowercase}`,
    { type: 'BertNormalizer', clean_text, handle_chinese_chars, strip_accents, lowercase });

const MAPPED = ['ﬁ Ａ　x', 'e\u0301 é e\u0301\u0327', 'カ\u3099 ｶﾞ ｶ ｶﾟ', '①㍿Å A\u030a A', 'a\u000bb\u00adc\u200bd', '👨\u200d👩 👨\u200d👩\u200d👧 👨', '\u0000ﬁ', 'ｶ\u0301ﾞ', 'ﬁ\u0301'];
normalizer('Precompiled', { type: 'Precompiled', precompiled_charsmap: CHARSMAP }, [...TEXTS, ...MAPPED]);

for (const behavior of ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'])
  for (const invert of [false, true]) {
    pre(`Split String ${behavior} ${invert}`, str('-', behavior, invert), ['--a--b', 'a-b-c', '-', '--', 'a', 'a-', '-a', 'ab--cd---']);
    pre(`Split Regex ${behavior} ${invert}`, rex('\\s|-', behavior, invert), ['--a- b', ' a  b-c ', '-', '--', 'a', 'a-', '- a', 'ab- cd -\n-']);
  }
const PATTERNS = ['\\s+', '\\S+', '\\w+', '\\W', '\\d{1,2}', '\\h+', '[^\\s\\p{L}\\p{N}]+', '\\p{Han}+', '\\p{Hiragana}|\\p{Katakana}',
  '\\p{^L}', '\\P{Lu}+', '\\p{Letter}\\p{Mark}*', '\\p{Punct}', '[[:punct:]]', '[[:alpha:]]+', '[[:^space:]]+', '\\p{Alnum}+', '\\p{word}+',
  '[a-z&&[^aeiou]]+', '[a-c[x-z]]', '[^a-c[x-z]]+', '[\\S&&\\W]', '[^\\S\\n]+', '\\bx', '\\B.', 'x{1,3}+', 'x{2}?', 'x{,3}', 'l{', '.+',
  '^.', '.$', '\\A.', '.\\z', '(?m).+', '(?i)HELLO|é|ß', '(?i:σ|k)', 'l(?i)L|w', '(?<v>[aeiou])\\k<v>?', '(?<=e)l+', '(?<!l)o', '(?>l+)o',
  '\\u0041|\\x{e9}|\\x61', '\\v|\\t', '\\R', 'x*', '(?=,)', '\\p{Emoji}', '\\p{So}|\\p{Sk}', '(?i)\\p{Lu}',
  '[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:\'s|\'t|\'re|\'ve|\'m|\'ll|\'d)?|\\p{N}{1,3}|\\s+(?!\\S)|\\s+',
  '(?i:\'s|\'t|\'re|\'ve|\'m|\'ll|\'d)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+',
  '[\\p{Han}&&\\p{L}]+|[\\p{L}&&[^\\p{Han}]]+', ' ?[^(\\s|[.,!?…。，、।۔،])]+'];
for (const pattern of PATTERNS) pre(`Split ${pattern}`, rex(pattern));
pre('Split String empty', str('', 'Isolated'), ['ab', '']);
for (const [add, regex] of [[true, true], [true, false], [false, true], [false, false]]) pre(`ByteLevel ${add} ${regex}`, bytes(add, regex));
for (const individual_digits of [true, false]) pre(`Digits ${individual_digits}`, { type: 'Digits', individual_digits });
for (const type of ['Whitespace', 'WhitespaceSplit', 'BertPreTokenizer', 'Punctuation']) pre(type, { type });
pre('Punctuation Removed', { type: 'Punctuation', behavior: 'Removed' });
pre('CharDelimiterSplit', { type: 'CharDelimiterSplit', delimiter: '-' });
for (const prepend_scheme of ['always', 'first', 'never'])
  for (const split of [true, false])
    pre(`Metaspace ${prepend_scheme} ${split}`, { type: 'Metaspace', replacement: '▁', prepend_scheme, split });
for (const add_prefix_space of [true, false])
  pre(`Metaspace of old files ${add_prefix_space}`, { type: 'Metaspace', replacement: '_', str_rep: '_', add_prefix_space,
    prepend_scheme: add_prefix_space ? undefined : 'never' });
pre('Sequence', seq('pretokenizers', [{ type: 'WhitespaceSplit' }, { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: true },
  { type: 'Digits', individual_digits: true }]));
pre('ByteLevel, then more', seq('pretokenizers', [bytes(true, false), rex('Ġ', 'MergedWithNext'), { type: 'Digits', individual_digits: false }]));

const added = (name, tokens, more, texts) => cases.push({ name, ids_only: tokens.some((token) => token.normalized), patch: { added_tokens: [special(256, '</s>'), ...tokens], ...more }, texts });
const A = ['<a>', ' <a> ', 'x <a>y', 'x<a> y<a>', '<a><a>', 'x  <a>  <a>  y', 'é<a>é', '_<a>', '\u200d<a>', '.<a>.', '<ab>', '<a', '\n<a>\t\n'];
for (const flag of ['single_word', 'lstrip', 'rstrip', 'normalized', 'special']) added(`added ${flag}`, [special(257, '<a>', { [flag]: true })], {}, A);
added('added lstrip and rstrip', [special(257, '<a>', { lstrip: true, rstrip: true, single_word: true })], {}, A);
added('the longest of added tokens', [special(257, 'ab'), special(258, 'abc'), special(259, 'bcd'), special(260, 'c')], {},
  ['ab', 'abc', 'abcd', 'abd', 'bcd', 'xbcx', 'aabcbcdc']);
added('added tokens that begin alike', [special(257, 'abcd'), special(258, 'bc'), special(259, 'ab')], {}, ['abce', 'abcd', 'abbc', 'xabce']);
added('added blanks', [special(257, '    ', { normalized: true, special: false }), special(258, '  ', { rstrip: true, special: false })], {},
  ['    x', '  x', '   x     y', '      ']);
const lower = { normalizer: { type: 'Lowercase' } };
added('added and normalized', [special(257, 'Hello', { normalized: true }), special(258, 'WORLD')], lower, ['hello HELLO Hello', 'world WORLD', 'helloWORLDhello']);
const marks = { normalizer: seq('normalizers', [{ type: 'Prepend', prepend: '▁' }, { type: 'Replace', pattern: { String: ' ' }, content: '▁' }]) };
added('added before a prefix', [special(257, '<a>'), special(258, 'tok', { normalized: true, special: false })], marks, ['x<a>y z', '<a>', 'tok a tok', ' tok', 'atok tok']);
added('added and Metaspace', [special(257, '<a>')], { pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: true } }, ['x<a>y z', '<a>y', ' y<a> z']);
added('added and normalized and ByteLevel', [special(257, '<é>', { normalized: true, special: false })], { pre_tokenizer: bytes(false, true), normalizer: { type: 'NFC' } },
  ['a<e\u0301>b', '<é>']);

const small = { ...vocab };
['</s>', '<unk>', 'a', 'b', 'c', 'ab', 'bc', 'abc', 'cc', '##b', '##c', 'a##b', 'ab##c', 'é', '▁', '▁a', 'aa', 'aaa', 'aaaa', 'c</w>', 'bc</w>', 'b</w>', 'a</w>', '##b</w>']
  .forEach((token, i) => { small[token] = 256 + i; });
const bare = { byte_fallback: false, end_of_word_suffix: null, vocab: small };
const M = ['abc', 'abcabc', 'ab', 'cabab', 'aaaaaaa', 'xaby', 'xyz', 'éxé', 'a b', '日本a', 'bcabc', 'abcc', 'x', 'ac b'];
const bpe = (name, more, texts = M) => cases.push({ name, patch: { model: model({ ...bare, ...more }) }, texts });
bpe('BPE ab before bc', { merges: ['a b', 'b c', 'ab c'] });
bpe('BPE bc before ab', { merges: ['b c', 'a b', 'a bc'] });
bpe('BPE pairs', { merges: [['b', 'c'], ['a', 'b'], ['a', 'bc'], ['ab', 'c']] });
bpe('BPE with a version', { merges: ['#version: 0.2', 'a b'] });
bpe('BPE of one letter', { merges: ['a a', 'aa a', 'aa aa'] });
bpe('BPE a pair twice', { merges: ['a b', 'b c', 'a b', 'ab c'] });
bpe('BPE ignore_merges', { merges: ['a b'], ignore_merges: true });
bpe('BPE unk', { unk_token: '<unk>' });
bpe('BPE unk fused', { unk_token: '<unk>', fuse_unk: true });
bpe('BPE unk and bytes', { unk_token: '<unk>', byte_fallback: true });
const holes = { ...small };
delete holes['<0xE6>'];
bpe('BPE unk and some bytes', { unk_token: '<unk>', byte_fallback: true, fuse_unk: true, vocab: holes }, ['日本a', '日xé日日x', 'x日', 'a日b']);
bpe('BPE prefix', { continuing_subword_prefix: '##', merges: ['a ##b', 'ab ##c'], unk_token: '<unk>' });
bpe('BPE suffix', { end_of_word_suffix: '</w>', merges: ['b c</w>', 'a b'], unk_token: '<unk>' });
bpe('BPE prefix and suffix', { continuing_subword_prefix: '##', end_of_word_suffix: '</w>', unk_token: '<unk>' });
bpe('BPE without a type', { type: undefined, merges: ['a b', 'b c'] });

const pieces = [['<unk>', 0], ['</s>', 0], ['a', -2], ['b', -2.5], ['c', -3], ['ab', -3.5], ['bc', -4], ['abc', -5.5], ['▁', -1.5], ['▁a', -2.25], ['é', -6], ['aa', -4], ['aaa', -6]];
const unigram = (name, more, texts = [...M, 'aaaa', 'abcab', 'éé日é']) =>
  cases.push({ name, patch: { added_tokens: [special(1, '</s>')], model: { type: 'Unigram', unk_id: 0, vocab: pieces, byte_fallback: false, ...more } }, texts });
unigram('Unigram', {});
unigram('Unigram with bytes', { byte_fallback: true, vocab: [...pieces, ...Object.keys(vocab).map((token) => [token, -10])] }, [...M, '<0x41>', 'A']);
unigram('Unigram with some bytes', { byte_fallback: true, vocab: [...pieces, ['<0xC3>', -10], ['<0x9F>', -10]] }, ['aßb', 'ß', 'ñß', 'x']);
cases.push({ name: 'Unigram and Metaspace', patch: { added_tokens: [special(1, '</s>')],
  pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
  decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
  model: { type: 'Unigram', unk_id: 0, vocab: pieces } }, texts: [...M, ' a  b', 'a </s> b'] });

const words = ['</s>', '<unk>', 'a', 'b', '▁', '▁a', '▁▁b▁', 'Ġ', 'Ġa', 'Ã', '©', 'a</w>', 'b</w>', '##b', '.', 'n\'t', '\'m', ' a', 'b ', '  ', 'do', 'not', '<0xC3>', '<0xa9>', '<0xE2>', '<0x82>', 'é', 'aba', 'bb'];
const decode = (name, value) => cases.push({ name, patch: { decoder: value, added_tokens: [special(0, '</s>')],
  model: model({ vocab: Object.fromEntries(words.map((word, i) => [word, i])), byte_fallback: false, end_of_word_suffix: null }) },
  ids: [[], [2], [5, 6, 5], [4, 4, 2], [8, 9, 10, 9, 0, 2, 9], [11, 12, 11], [2, 13, 14, 15, 16, 2, 20, 21], [17, 18, 19, 17], [22, 23, 2, 24, 25, 3, 22, 23, 24, 26], [6, 27, 28, 2]] });
decode('no decoder', null);
decode('decoder ByteLevel', bytes(true, true));
decode('decoder ByteFallback', { type: 'ByteFallback' });
decode('decoder Fuse and Strip', seq('decoders', [{ type: 'Fuse' }, { type: 'Strip', content: ' ', start: 1, stop: 0 }]));
decode('decoder Strip front', { type: 'Strip', content: 'b', start: 1, stop: 0 });
decode('decoder Strip end', { type: 'Strip', content: 'b', start: 0, stop: 1 });
for (const prepend_scheme of ['always', 'first', 'never'])
  decode(`decoder Metaspace ${prepend_scheme}`, { type: 'Metaspace', replacement: '▁', prepend_scheme, split: true });
decode('decoder Replace', { type: 'Replace', pattern: { String: '▁' }, content: ' ' });
decode('decoder Replace Regex', { type: 'Replace', pattern: { Regex: '[ab]+' }, content: 'x' });
decode('decoder BPEDecoder', { type: 'BPEDecoder', suffix: '</w>' });
for (const cleanup of [true, false]) decode(`decoder WordPiece ${cleanup}`, { type: 'WordPiece', prefix: '##', cleanup });

for (const file of ['t4', 't7', 't8', 't10', 't12', 't18'])
  cases.push({ name: file, file: `cases/${file}.json`, patch: {}, texts: [...TEXTS, 'the  the 1234', '<s>the</s> the', '<think>x</think>    y',
    '<|im_start|>user\nthe<|im_end|>', '中文the日本語 <｜begin▁of▁sentence｜>the', '<|endoftext|>    the    the'] });

async function main([library, out]) {
  const { Tokenizer } = require(path.resolve(library));
  for (const one of cases) {
    const file = one.file ? JSON.parse(fs.readFileSync(path.join(path.dirname(out), one.file), 'utf8')) : base;
    const tokenizer = { ...file, ...one.patch };
    let library;
    try {
      library = Tokenizer.fromString(JSON.stringify(tokenizer));
    } catch (e) {
      throw new Error(`${one.name}: ${e.message}`);
    }
    const results = [];
    for (const given of one.texts ?? one.ids) {
      const ids = one.texts ? (await library.encode(given, null, { addSpecialTokens: false })).getIds() : given;
      // Versions of the library differ in what a normalized added token is decoded to.
      results.push([one.texts ? given : null, ids, one.ids_only ? null : await library.decode(ids, false)]);
    }
    one.texts = results;
    delete one.ids;
  }
  const lines = cases.map((one) => JSON.stringify(one));
  fs.writeFileSync(out, `{"base": ${JSON.stringify(base)},\n"cases": [\n${lines.join(',\n')}\n]}\n`);
}

main(process.argv.slice(2)).catch((e) => { console.error(e.message); process.exitCode = 1; });
