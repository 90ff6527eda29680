#include "runtime/device/stream_workers.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace hyperrun {

class StreamWorkers::Impl {
 public:
  explicit Impl(std::function<void()> prepare_thread) : prepare_(std::move(prepare_thread)) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      const auto stream = static_cast<StreamKind>(s);
      if (stream == StreamKind::kComm || !communicates(stream))
        threads_.emplace_back([this, stream] { loop(stream); });
    }
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    start_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  void run(const std::function<void(StreamKind)>& work, const std::function<void()>& stop_others) {
    std::unique_lock lock(mutex_);
    work_ = &work;
    stop_others_ = &stop_others;
    error_ = nullptr;
    running_ = threads_.size();
    ++generation_;
    start_.notify_all();
    done_.wait(lock, [this] { return running_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void loop(StreamKind stream) {
    prepare_();
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      start_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_) return;
      seen = generation_;
      const auto& work = *work_;
      const auto& stop_others = *stop_others_;
      lock.unlock();
      try {
        work(stream);
        lock.lock();
      } catch (...) {
        lock.lock();
        if (!error_) error_ = std::current_exception();
        lock.unlock();
        stop_others();
        lock.lock();
      }
      if (--running_ == 0) done_.notify_one();
    }
  }

  std::function<void()> prepare_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(StreamKind)>* work_ = nullptr;
  const std::function<void()>* stop_others_ = nullptr;
  std::exception_ptr error_;
  std::uint64_t generation_ = 0;
  std::size_t running_ = 0;
  bool stop_ = false;
};

StreamWorkers::StreamWorkers(std::function<void()> prepare_thread)
    : impl_(std::make_unique<Impl>(std::move(prepare_thread))) {}
StreamWorkers::~StreamWorkers() = default;
void StreamWorkers::run(const std::function<void(StreamKind)>& work,
                        const std::function<void()>& stop_others) {
  impl_->run(work, stop_others);
}

}  // namespace hyperrun
