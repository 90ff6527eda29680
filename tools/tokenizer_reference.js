#!/usr/bin/env node
// What Hugging Face's library makes of texts, for tests and benchmarks of our tokenizers.
//
//   tokenizer_reference.js texts TEXTS                        writes a megabyte of mixed texts, always the same
//   tokenizer_reference.js ids LIBRARY TOKENIZER TEXTS OUT    writes the ids that the library gives, and the
//                                                             texts that it makes of them again
//   tokenizer_reference.js speed LIBRARY TOKENIZER TEXTS      prints MB/s of the library
//
// TEXTS is a list of texts: for each a 32-bit length (little endian) and the bytes, which need not be UTF-8. OUT
// has for each text a 32-bit count and the ids, a 32-bit length and the decoded text, special tokens included.
// LIBRARY is the folder of npm's package tokenizers, which is the Rust library.
'use strict';
const fs = require('fs');

// A small generator of random numbers (mulberry32), so that texts are the same everywhere.
let state = 20240229;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const below = (n) => Math.floor(random() * n);
const pick = (list) => list[below(list.length)];
const repeat = (count, make) => Array.from({ length: count }, make).join('');

const SENTENCES = [
  'The harbour was quiet when the last boat came in, and nobody spoke of the storm. ',
  "I'd say they've known it all along; we'll see whether it's true, won't we? ",
  'SHE’S SURE THEY’LL COME. IT\'S LATE, HE\'D SAID, "DON\'T WAIT". ',
  'Der Zug fährt um Viertel nach fünf über die Brücke; größere Städte liegen südlich. ',
  'Le garçon préfère les œufs brouillés à la crème fraîche, n’est-ce pas ? ',
  'Mañana iremos al pequeño café de la esquina — ¿vendrás? ¡Claro que sí! ',
  'Na próxima semana começará a construção da estação, disse o João. ',
  'Łódź leży w środku Polski, a źdźbło trawy drży na wietrze. ',
  'Příliš žluťoučký kůň pěl ďábelské ódy na břehu řeky. ',
  'Iğdır’ın ışıkları İstanbul’dan görünmez, çünkü dağlar yüksektir. ',
  'Утром мы пошли к реке, где рыбаки чинили свои сети и пили чай. ',
  'Вона їхала поїздом із Києва, щоб побачити море навесні. ',
  'Το πλοίο έφτασε στο λιμάνι πριν από την ανατολή του ήλιου· όλοι κοιμόντουσαν. ',
  'הספינה הגיעה לנמל לפני הזריחה, וכולם עדיין ישנו. שָׁלוֹם. ',
  'وصلت السفينة إلى الميناء قبل شروق الشمس، وكان الجميع نائمين. مَرْحَبًا ',
  'जहाज़ सूर्योदय से पहले बंदरगाह पर पहुँचा और सब सो रहे थे। ',
  'সূর্যোদয়ের আগে জাহাজটি বন্দরে পৌঁছেছিল। ',
  'சூரிய உதயத்திற்கு முன் கப்பல் துறைமுகத்தை அடைந்தது. ',
  'เรือมาถึงท่าเรือก่อนพระอาทิตย์ขึ้นและทุกคนยังหลับอยู่ ',
  'ເຮືອມາຮອດທ່າເຮືອກ່ອນຕາເວັນຂຶ້ນ ',
  'Con tàu đến cảng trước khi mặt trời mọc, và mọi người vẫn còn ngủ. ',
  '船在日出之前到达了港口，大家都还在睡觉。我们明天早上八点出发，好吗？',
  '船は日の出前に港に着いたが、みんなまだ眠っていた。カタカナとひらがな、ｶﾀｶﾅも。',
  '배는 해가 뜨기 전에 항구에 도착했고 모두 아직 자고 있었다. ',
  'ნავი ნავსადგურში მზის ამოსვლამდე მივიდა. ',
  'Նավը նավահանգիստ հասավ արևածագից առաջ։ ',
  'መርከቡ ከፀሐይ መውጣት በፊት ወደብ ደረሰ። ',
  'ᠮᠣᠩᠭᠣᠯ ᠪᠢᠴᠢᠭ ᏣᎳᎩ ᐃᓄᒃᑎᑐᑦ ⰳⰾⰰⰳⱁⰾⰹⱌⰰ 𐌲𐌿𐍄 𝔣𝔯𝔞𝔨𝔱𝔲𝔯 𓀀𓂀 ',
];

const CODE = [
  'def area(self, r: float) -> float:\n    """Area of a circle."""\n    return 3.14159 * r ** 2\n\n\n',
  'for (std::size_t i = 0; i < rows.size(); ++i) {\n\tif (!rows[i]) continue;\n\tsum += rows[i]->value;\n}\r\n',
  '<div class="row" id=\'x1\'>\n  <a href="https://example.org/?q=a%20b&n=10#top">more&hellip;</a>\n</div>\n',
  '{"name": "value", "list": [1, 2.5e-3, null, true], "nested": {"k\\n": "\\u00e9"}}\n',
  'SELECT id, COUNT(*) AS n FROM t WHERE a <> b AND c LIKE \'%x_\' GROUP BY id;\n',
  '$ make -j8 CFLAGS="-O2 -g" 2>&1 | tee build.log && ./run --seed=42\n',
  '        fn main() { let x: Vec<u8> = vec![0u8; 1 << 20]; println!("{:?}", &x[..4]); }\n',
  '#include <stdio.h>\n\n\n/* *************************** */\n// ===========================\n',
  '\\begin{equation} \\sum_{i=1}^{n} x_i^2 \\leq \\frac{1}{2} \\end{equation}\n',
  '| a | b |\n|---|:-:|\n| `x` | **y** |\n\n- [ ] item\n  1. other\n',
];

const NUMBERS = ['0', '7', '42', '365', '1000', '12345', '3.14159', '1,000,000', '6.02e23', '0x1F', '2024-02-29',
  '+49 30 1234567', '٣٤٥', '१२३४', '１２３４５', '½', '¾', '²³', 'Ⅻ', '①②③', '𝟘𝟙𝟚', '100%', '€19.99', '№5'];
const EMOJI = ['😀', '👍🏽', '👨‍👩‍👧‍👦', '🏳️‍🌈', '🇩🇪🇯🇵', '1️⃣', '❤️', '☎', '👩🏿‍🚀', '🤷‍♂️', '✈️', '⚡⚡⚡', '🫠'];
const BLANKS = [' ', '  ', '    ', '\t', '\t\t', '\n', '\n\n', '\n\n\n\n', '\r\n', '\r\n\r\n', '\r', ' \n', '\n ', ' \t \n',
  '\u00a0', '\u2003', '\u3000', '\u2009\u200a', '\u0085', '\u2028', '\u2029', '\u200b', '\ufeff', '\u180e', '\u000b',
  '\u000c', '\u202f', '\u1680', '                '];
const COMBINING = ['\u0301', '\u0308', '\u0327', '\u0323', '\u0302\u0301', '\u0303', '\u030a', '\u0338', '\u20dd', '\u05b8',
  '\u064b', '\u093c', '\u3099', '\u309a', '\u0345', '\u034f', '\u200d', '\u200c', '\ufe0f'];
const COMPATIBLE = ['ﬁ', 'ﬄ', 'ĳ', 'ǆ', '㍿', '㌔', '℡', '™', '…', 'ﾊﾟ', 'ｶﾞ', '＂', 'Ａｂｃ', 'ﷺ', 'Å', 'Ω', '가', '각',
  'ẛ̣', 'ſ', 'ﬅ', '´', '¨', '˚', '⑴', '⒈', '〱', 'ﺍ', 'ﻼ', '豈', '\u{2f800}', '\u{1d15e}', '\u0344', '\u0958', '\u2126'];
const ADDED = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<s>', '</s>', '<unk>', '<pad>', '<bos>', '<eos>',
  '<|begin_of_text|>', '<|eot_id|>', '<|end_of_text|>', '<｜begin▁of▁sentence｜>', '<｜end▁of▁sentence｜>', '<think>',
  '</think>', '<tool_call>', '<|endoftext', '<start_of_turn>', '<0x41>', '<0xE4>', '▁', '▁▁', 'Ġ', 'Ċ', '[CLS]', '##ing'];
const SHORT = ["'s", "'S", "'t", "'LL", "'re", "'Ve", "'m", "'d", "'ſ", '’s', "''", '"', '.', ',', '...', '!?', '--', '—', '/',
  '\\', '_', '@', '#', '&', '*', '(', ')', '[', ']', '{', '}', '<', '>', '=', '+', '~', '^', '`', '|', '$', '%', ';', ':',
  '¿', '«', '»', '、', '。', '·', 'a', 'I', 'x', 'é', 'ß', 'İ', 'ı', 'Σ', 'ς', 'K', 'Å', 'й', '中', 'ん', '한', '\u0000', '\u007f', '�'];

// A character from a plane with many, not of those that newer versions of Unicode have added.
const RANGES = [[0x20, 0x7e], [0xa0, 0x377], [0x400, 0x52f], [0x5d0, 0x5ea], [0x620, 0x6ff], [0x904, 0x939], [0xe01, 0xe3a],
  [0x10a0, 0x10c5], [0x1100, 0x11ff], [0x1e00, 0x1f15], [0x2000, 0x2064], [0x20a0, 0x20bf], [0x2100, 0x218b], [0x2190, 0x23ff],
  [0x2460, 0x27ff], [0x3000, 0x303f], [0x3041, 0x3096], [0x30a0, 0x30ff], [0x4e00, 0x9fef], [0xac00, 0xd7a3],
  [0xe000, 0xf8ff], [0xf900, 0xfa6d], [0xfb00, 0xfb06], [0xfe30, 0xfe4f], [0xff01, 0xffbe], [0x10000, 0x1004d],
  [0x1d400, 0x1d454], [0x1f300, 0x1f64f], [0x20000, 0x2a6d6]];
function character() {
  const [first, last] = pick(RANGES);
  return String.fromCodePoint(first + below(last - first + 1));
}

const WORDS = SENTENCES.join('').split(' ');
function longWord() {
  const kind = below(6);
  const length = 50 + below(2500);
  if (kind === 0) return pick(['a', 'ab', 'é', 'x', '=', '-', '中', '字', ' ', '\n', '\t', '😀', '0', 'ha']).repeat(length);
  if (kind === 1) return repeat(length, () => String.fromCharCode(97 + below(26)));
  if (kind === 2) return repeat(length, () => String.fromCharCode(48 + below(10)));
  if (kind === 3) return repeat(length / 4, () => String.fromCodePoint(0x4e00 + below(0x51a6)));
  if (kind === 4) return Buffer.from(repeat(length, character)).toString('base64');
  return repeat(length / 8, () => pick(WORDS)).replace(/ /g, '');
}

const KINDS = [
  () => repeat(6, () => pick(SENTENCES)),
  () => { const one = pick(SENTENCES); return one.repeat(1 + below(4)); },
  () => repeat(4, () => pick(CODE)),
  () => repeat(40, () => pick(NUMBERS) + pick([' ', ',', '', '\n'])),
  () => repeat(30, () => pick(EMOJI) + pick(['', ' ', '!'])),
  () => repeat(60, () => pick(BLANKS) + pick(['', '', pick(SHORT), pick(WORDS)])),
  () => repeat(40, () => pick(WORDS).normalize('NFD') + pick(COMBINING) + pick([' ', ''])),
  () => repeat(50, () => pick(COMPATIBLE) + pick(['', ' ', pick(SHORT)])),
  () => repeat(200, character),
  () => repeat(80, () => pick(SHORT) + pick(['', ' ', pick(WORDS)])),
  () => repeat(20, () => pick(['', ' ', '  ', '\n', pick(WORDS)]) + pick(ADDED) + pick(['', ' ', pick(SENTENCES)])),
  () => longWord(),
  () => repeat(60, () => pick([pick(WORDS), pick(SHORT), pick(BLANKS), pick(NUMBERS), pick(EMOJI), pick(COMPATIBLE), character()])),
];

function damaged(text) {
  const bytes = Buffer.from(text);
  for (let n = 1 + below(8); n > 0 && bytes.length > 0; --n) bytes[below(bytes.length)] = below(256);
  return bytes.subarray(0, bytes.length - below(Math.min(3, bytes.length)));
}

function makeTexts() {
  const texts = [Buffer.from(''), Buffer.from(' '), Buffer.from('\n'), Buffer.from('a')];
  let bytes = 0;
  for (let i = 0; bytes < 1000000; ++i) {
    const text = KINDS[i % KINDS.length]();
    texts.push(i % 11 === 5 ? damaged(text) : Buffer.from(text));
    bytes += texts[texts.length - 1].length;
  }
  texts.push(Buffer.concat(texts));  // one long text with all of it
  return texts;
}

function number(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function readTexts(path) {
  const file = fs.readFileSync(path);
  const texts = [];
  for (let at = 0; at < file.length;) {
    const length = file.readUInt32LE(at);
    texts.push(file.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return texts;
}

const valid = (bytes) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);

async function writeIds(library, tokenizer, texts, out) {
  const model = require(library).Tokenizer.fromString(fs.readFileSync(tokenizer, 'utf8'));
  const parts = [];
  for (const text of readTexts(texts)) {
    const ids = (await model.encode(valid(text), null, { addSpecialTokens: false })).getIds();
    const decoded = Buffer.from(await model.decode(ids, false));
    parts.push(number(ids.length), Buffer.from(Uint32Array.from(ids).buffer), number(decoded.length), decoded);
  }
  fs.writeFileSync(out, Buffer.concat(parts));
}

// The best of five rounds, text by text.
async function printSpeed(library, tokenizer, texts) {
  const model = require(library).Tokenizer.fromString(fs.readFileSync(tokenizer, 'utf8'));
  const all = readTexts(texts).slice(0, -1).map(valid);
  const megabytes = all.reduce((sum, text) => sum + Buffer.byteLength(text), 0) / 1e6;
  let best = Infinity;
  for (let round = 0; round < 5; ++round) {
    const begin = process.hrtime.bigint();
    for (const text of all) await model.encode(text, null, { addSpecialTokens: false });
    best = Math.min(best, Number(process.hrtime.bigint() - begin) / 1e9);
  }
  console.log(`${(megabytes / best).toFixed(2)} MB/s`);
}

async function main([verb, ...rest]) {
  if (verb === 'texts' && rest.length === 1) {
    fs.writeFileSync(rest[0], Buffer.concat(makeTexts().flatMap((text) => [number(text.length), text])));
  } else if (verb === 'ids' && rest.length === 4) {
    await writeIds(...rest);
  } else if (verb === 'speed' && rest.length === 3) {
    await printSpeed(...rest);
  } else {
    console.error('tokenizer_reference.js texts TEXTS | ids LIBRARY TOKENIZER TEXTS OUT | speed LIBRARY TOKENIZER TEXTS');
    process.exitCode = 2;
  }
}

main(process.argv.slice(2));
