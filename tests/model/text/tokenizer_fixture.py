#!/usr/bin/env python3
"""Tokenizers in the manner of Llama 2 and Llama 3, and what they make of texts, by other programs than hyperrun.

  tokenizer_fixture.py DIRECTORY            writes the files below
  tokenizer_fixture.py --compare DIRECTORY  tokenizes anew and compares; exit status 1 when ids differ, 77 when
                                            Debian's python3-sentencepiece or python3-regex is not installed

llama2/tokenizer.model  of SentencePiece, trained with the settings of Llama 2
llama2/tokenizer.bin    the same as llama2.c's tokenizer.py exports it
llama2/tokenizer.json   the same as Hugging Face's library converts it
llama2/expected.json    [[text, ids], ...] by SentencePiece
llama3/tokenizer.json   byte-level, with Llama 3's pattern, special tokens and a word that no merges make
llama3/expected.json    by Python's module regex and merging as it is defined. Hugging Face's library (tokenizers
                        0.22.2) gives the same ids for both tokenizer.json
"""
import argparse
import json
import os
import random
import struct
import sys

try:
    import regex
    import sentencepiece
except ImportError as e:
    print(f"skipped: {e} (Debian: python3-sentencepiece, python3-regex)")
    sys.exit(77)

TEXT = """In the beginning God created the heaven and the earth.
And the earth was without form, and void; and darkness was upon the face of the deep. And the Spirit of God moved
upon the face of the waters.
And God said, Let there be light: and there was light.
And God saw the light, that it was good: and God divided the light from the darkness.
And God called the light Day, and the darkness he called Night. And the evening and the morning were the first day.
And God said, Let there be a firmament in the midst of the waters, and let it divide the waters from the waters.
    for (int i = 0; i < 1024; ++i) {
        total += values[i];  // it's what we're summing
    }

It's 365 days, isn't it? They'll say we've 1000000 of them; I'd say so, I'm sure. CAN'T, WON'T.
Été à Noël, déjà vu; naïve Übermut.
"""

TEXTS = [
    "", " ", "  ", "a", "Hello, world!", " leading and trailing ", "two  blanks   three", "In the beginning God created",
    "line\nline\r\n\r\nline\n\n  indented\n", "\ttabs\tand\t\tmore", "1 22 333 4444 55555 3.14159",
    "It's WE'RE they'LL I'd 'tis 'S'T'RE'VE'M'LL'D 'x''s", "it'\u017fe long s", "Ete \u00e9t\u00e9 na\u00efve \u65e5\u672c\u8a9e \u03a9mega \u00bd\u0663",
    "emoji \U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 end", "mark \u2581 inside \u2581\u2581x", "a\u00a0b\u3000c\u2003d",
    "...!!!\n\n???\r\n,;\n", "x=1;y=2;  // done\n\n\n", "e\u0301 combining", "\x00\x01\x7f control", "    \n    \n  x",
    "darkness divided firmament firmaments", "<unk <s </s ><0x41>", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "the the the the",
    "\u00df\u017f\u212a", "$%^&*()_+{}|:\"<>?", "caf\u00e9s' \u2018quotes\u2019 \u2014 dash",
]


def random_texts(count):
    rng = random.Random(7)
    pieces = [" ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "'", "the", "God", "light", "dark", "e", "s", "t", "th", "\u00e9",
              "12", "7", "00", ".", ",", "--", "\u65e5", "\u2581", "_", "A", "IT", "'t", "waters", "and", "\u00a0", "<", ">"]
    return ["".join(rng.choice(pieces) for _ in range(rng.randint(1, 24))) for _ in range(count)]


def all_texts():
    return TEXTS + [line + "\n" for line in TEXT.splitlines()] + [TEXT] + random_texts(120)


# ---- Llama 2

def train_sentencepiece(path):
    corpus = path + ".txt"
    with open(corpus, "w", encoding="utf-8") as f:
        f.write(TEXT)
    sentencepiece.SentencePieceTrainer.train(
        input=corpus, model_prefix=path, model_type="bpe", vocab_size=420, num_threads=1, byte_fallback=True,
        split_digits=True, allow_whitespace_only_pieces=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, character_coverage=0.99, minloglevel=2)
    os.remove(corpus)
    os.remove(path + ".vocab")
    os.replace(path + ".model", path)


def load_sentencepiece(path):
    return sentencepiece.SentencePieceProcessor(model_file=path)


def pieces_of(sp):
    return [(sp.id_to_piece(i), sp.get_score(i)) for i in range(sp.get_piece_size())]


def write_bin(sp, path):
    tokens = []
    for i, (piece, score) in enumerate(pieces_of(sp)):
        piece = {1: "\n<s>\n", 2: "\n</s>\n"}.get(i, piece)
        tokens.append((score, piece.replace("\u2581", " ").encode()))
    with open(path, "wb") as f:
        f.write(struct.pack("<i", max(len(text) for _, text in tokens)))
        for score, text in tokens:
            f.write(struct.pack("<fi", score, len(text)) + text)


def special(token, number):
    return {"id": number, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True}


def template(token, number):
    return {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"SpecialToken": {"id": token, "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}}}


def write_llama2_json(sp, path):
    pieces = pieces_of(sp)
    vocab = {piece: i for i, (piece, _) in enumerate(pieces)}
    scores = dict(pieces)
    splits = [(piece[:k], piece[k:]) for piece, _ in pieces for k in range(1, len(piece))]
    merges = [(a, b) for a, b in splits if a in vocab and b in vocab]
    merges.sort(key=lambda m: (scores[m[0] + m[1]], len(m[0])), reverse=True)
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    back = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
    root = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [special("<unk>", 0), special("<s>", 1), special("</s>", 2)],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, replace]},
        "pre_tokenizer": None,
        "post_processor": template("<s>", 1),
        "decoder": {"type": "Sequence", "decoders": [back, {"type": "ByteFallback"}, {"type": "Fuse"},
                                                     {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "vocab": vocab,
                  "merges": [f"{a} {b}" for a, b in merges]}}
    write_json(root, path)


# ---- Llama 3

PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")
WORD = " firmament"  # a token that merges do not reach


def byte_characters():
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {b: chr(b) for b in visible}
    for b in range(256):
        table.setdefault(b, chr(256 + len(table) - len(visible)))
    return table


CHARACTERS = byte_characters()


def spelled(data):
    return "".join(CHARACTERS[b] for b in data)


def words_of(text):
    return [spelled(word.encode()) for word in regex.findall(PATTERN, text)]


def merge(word, pair):
    out = []
    for symbol in word:
        if out and (out[-1], symbol) == pair and out[-1] is not None:
            out[-1] = out[-1] + symbol
            out.append(None)  # what was just made does not merge again in this pass
        else:
            out.append(symbol)
    return [s for s in out if s is not None]


def train_llama3(count):
    words = [list(word) for word in words_of(TEXT)]
    merges = []
    for _ in range(count):
        counts = {}
        for word in words:
            for pair in zip(word, word[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        words = [merge(word, best) for word in words]
    return merges


def write_llama3_json(path):
    merges = train_llama3(110)
    tokens = [CHARACTERS[b] for b in sorted(range(256), key=lambda b: CHARACTERS[b])]
    for a, b in merges:
        if a + b not in tokens:
            tokens.append(a + b)
    tokens.append(spelled(WORD.encode()))
    added = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
    processors = [{**byte_level, "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
                  template(added[0], len(tokens))]
    root = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [special(token, len(tokens) + i) for i, token in enumerate(added)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": {"type": "Sequence", "processors": processors},
        "decoder": {**byte_level, "add_prefix_space": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": True,
                  "vocab": {token: i for i, token in enumerate(tokens)},
                  "merges": [f"{a} {b}" for a, b in merges]}}
    write_json(root, path)


def llama3_ids(root, text):
    vocab = root["model"]["vocab"]
    ranks = {tuple(pair.split(" ")): rank for rank, pair in enumerate(root["model"]["merges"])}
    ids = []
    for word in words_of(text):
        symbols = [word] if word in vocab else list(word)
        while pairs := [pair for pair in zip(symbols, symbols[1:]) if pair in ranks]:
            symbols = merge(symbols, min(pairs, key=ranks.get))
        ids += [vocab[s] for s in symbols]
    return ids


# ---- files

def write_json(root, path):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(root, f, ensure_ascii=True, indent=None, separators=(",", ":"))
        f.write("\n")


def read_json(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def compute(directory):
    sp = load_sentencepiece(os.path.join(directory, "llama2/tokenizer.model"))
    llama3 = read_json(os.path.join(directory, "llama3/tokenizer.json"))
    return {"llama2": [[text, sp.encode(text)] for text in all_texts()],
            "llama3": [[text, llama3_ids(llama3, text)] for text in all_texts()]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--compare", action="store_true")
    arguments = parser.parse_args()
    at = lambda name: os.path.join(arguments.directory, name)
    if not arguments.compare:
        for name in ("llama2", "llama3"):
            os.makedirs(at(name), exist_ok=True)
        train_sentencepiece(at("llama2/tokenizer.model"))
        sp = load_sentencepiece(at("llama2/tokenizer.model"))
        write_bin(sp, at("llama2/tokenizer.bin"))
        write_llama2_json(sp, at("llama2/tokenizer.json"))
        write_llama3_json(at("llama3/tokenizer.json"))
        for name, expected in compute(arguments.directory).items():
            write_json(expected, at(f"{name}/expected.json"))
        return 0
    differ = 0
    for name, expected in compute(arguments.directory).items():
        for (text, ids), (_, stored) in zip(expected, read_json(at(f"{name}/expected.json")), strict=True):
            if ids != stored:
                print(f"{name}: {text!r}: {ids}, stored {stored}")
                differ = 1
    return differ


if __name__ == "__main__":
    sys.exit(main())
