#include "tests/support/llama2c_model.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace hyperrun::testing {
namespace {

using Vector = std::vector<double>;

template <class T>
void append(std::string& out, const T* values, std::size_t count) {
  out.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}
void append(std::string& out, const std::vector<float>& values) { append(out, values.data(), values.size()); }

Vector rms_norm(const Vector& x, const float* weight) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + 1e-5);
  Vector y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = weight[i] * (scale * x[i]);
  return y;
}

// The product of `weight` [rows, x.size()] and x.
Vector product(const float* weight, const Vector& x, std::size_t rows) {
  Vector y(rows);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < x.size(); ++c) y[r] += weight[r * x.size() + c] * x[c];
  return y;
}

void softmax(Vector& x) {
  const double most = *std::ranges::max_element(x);
  double sum = 0;
  for (double& v : x) sum += v = std::exp(v - most);
  for (double& v : x) v /= sum;
}

void add(Vector& x, const Vector& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

// The keys and values of one layer for the tokens so far.
struct Cache {
  std::vector<Vector> keys, values;
};

Vector attention(const Llama2cModel& m, const Vector& q, const Cache& cache) {
  const auto size = static_cast<std::size_t>(m.head_size());
  Vector out(q.size());
  for (std::size_t head = 0; head < q.size() / size; ++head) {
    const std::size_t at = head * size;
    const std::size_t kv = head / static_cast<std::size_t>(m.n_heads / m.n_kv_heads) * size;
    Vector scores;
    for (const Vector& key : cache.keys) {
      double score = 0;
      for (std::size_t i = 0; i < size; ++i) score += q[at + i] * key[kv + i];
      scores.push_back(score / std::sqrt(static_cast<double>(size)));
    }
    softmax(scores);
    for (std::size_t t = 0; t < scores.size(); ++t)
      for (std::size_t i = 0; i < size; ++i) out[at + i] += scores[t] * cache.values[t][kv + i];
  }
  return out;
}

}  // namespace

void turn_neighbours(std::span<double> x, std::int32_t head_size, std::int64_t position) {
  for (std::size_t i = 0; i < x.size(); i += 2) {
    const auto in_head = static_cast<double>(i % static_cast<std::size_t>(head_size));
    const double angle = static_cast<double>(position) * std::pow(10000.0, -in_head / head_size);
    const double a = x[i], b = x[i + 1];
    x[i] = a * std::cos(angle) - b * std::sin(angle);
    x[i + 1] = a * std::sin(angle) + b * std::cos(angle);
  }
}

void Llama2cModel::fill(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto fill = [&](std::vector<float>& values, std::int64_t count, float mean, float deviation) {
    std::normal_distribution<float> normal(mean, deviation);
    values.resize(static_cast<std::size_t>(count));
    for (float& v : values) v = normal(random);
  };
  const std::int64_t d = dim, f = hidden_dim, l = n_layers, v = vocab_size, kv = kv_dim();
  fill(embedding, v * d, 0, 1);
  for (std::vector<float>* norm : {&rms_att, &rms_ffn}) fill(*norm, l * d, 1, 0.3F);
  fill(rms_final, d, 1, 0.3F);
  for (std::vector<float>* square : {&wq, &wo}) fill(*square, l * d * d, 0, 0.4F);
  for (std::vector<float>* narrow : {&wk, &wv}) fill(*narrow, l * kv * d, 0, 0.4F);
  for (std::vector<float>* wide : {&w1, &w2, &w3}) fill(*wide, l * d * f, 0, 0.3F);
  if (!shared_classifier) fill(classifier, v * d, 0, 0.4F);
}

std::string Llama2cModel::file(int version) const {
  std::string out;
  const std::int32_t vocab = version == 0 && !shared_classifier ? -vocab_size : vocab_size;
  const std::int32_t header[] = {dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab, seq_len};
  if (version == 0) {
    append(out, header, 7);
    for (const auto* part : {&embedding, &rms_att, &wq, &wk, &wv, &wo, &rms_ffn, &w1, &w2, &w3, &rms_final})
      append(out, *part);
    append(out, std::vector<float>(static_cast<std::size_t>(seq_len * head_size()), 0.5F));
  } else {
    const std::int32_t magic_and_version[] = {0x616b3432, version};
    append(out, magic_and_version, 2);
    append(out, header, 7);
    out += shared_classifier ? '\1' : '\0';
    out.resize(256);
    for (const auto* part : {&rms_att, &rms_ffn, &rms_final, &embedding, &wq, &wk, &wv, &wo, &w1, &w2, &w3})
      append(out, *part);
  }
  append(out, classifier);
  return out;
}

std::vector<Vector> Llama2cModel::forward(std::span<const std::int32_t> tokens) const {
  const auto d = static_cast<std::size_t>(dim), f = static_cast<std::size_t>(hidden_dim),
             kv = static_cast<std::size_t>(kv_dim());
  std::vector<Cache> caches(static_cast<std::size_t>(n_layers));
  std::vector<Vector> logits;
  for (std::size_t position = 0; position < tokens.size(); ++position) {
    const float* row = &embedding[static_cast<std::size_t>(tokens[position]) * d];
    Vector x(row, row + d);
    for (std::size_t l = 0; l < caches.size(); ++l) {
      Vector normed = rms_norm(x, &rms_att[l * d]);
      Vector q = product(&wq[l * d * d], normed, d), k = product(&wk[l * kv * d], normed, kv);
      turn_neighbours(q, head_size(), static_cast<std::int64_t>(position));
      turn_neighbours(k, head_size(), static_cast<std::int64_t>(position));
      caches[l].keys.push_back(k);
      caches[l].values.push_back(product(&wv[l * kv * d], normed, kv));
      add(x, product(&wo[l * d * d], attention(*this, q, caches[l]), d));

      normed = rms_norm(x, &rms_ffn[l * d]);
      Vector gate = product(&w1[l * d * f], normed, f);
      const Vector up = product(&w3[l * d * f], normed, f);
      for (std::size_t i = 0; i < f; ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      add(x, product(&w2[l * d * f], gate, d));
    }
    logits.push_back(product((shared_classifier ? embedding : classifier).data(),
                             rms_norm(x, rms_final.data()), static_cast<std::size_t>(vocab_size)));
  }
  return logits;
}

}  // namespace hyperrun::testing
