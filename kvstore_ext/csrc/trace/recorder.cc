#include "trace/recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace kvstore_ext {
namespace {

constexpr size_t kEventsAt = 4096;
constexpr uint64_t kNoMore = uint64_t{1} << 62;

uint32_t ThisThread() {
  thread_local const auto number = static_cast<uint32_t>(syscall(SYS_gettid));
  return number;
}

[[noreturn]] void Fail(const std::string& path, const char* what, int error) {
  throw std::runtime_error(path + " cannot be " + what + ": " + std::strerror(error));
}

}  // namespace

class Recorder::File {
 public:
  File(const std::string& path, uint64_t capacity)
      : capacity_(capacity), bytes_(kEventsAt + capacity * sizeof(Event)) {
    // Who still fills a place of an earlier file of this name has it in memory: that file may lose
    // its name, and must not become shorter.
    unlink(path.c_str());
    descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor_ < 0) Fail(path, "written", errno);
    // Room that is only promised would end the process where the disk is full later.
    const int full = posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes_));
    void* memory = MAP_FAILED;
    if (full == 0) {
      memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    }
    if (memory == MAP_FAILED) {
      const int error = full != 0 ? full : errno;
      close(descriptor_);
      unlink(path.c_str());
      Fail(path, ("given " + std::to_string(bytes_) + " bytes").c_str(), error);
    }
    memory_ = static_cast<char*>(memory);
    header_ = new (memory_) Header;
    header_->capacity = capacity;
  }

  ~File() {
    Close();
    munmap(memory_, bytes_);
  }

  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void Write(const Event& event) {
    const uint64_t place = next_.fetch_add(1, std::memory_order_relaxed);
    if (place >= kNoMore) return;
    Claim(place + 1);
    if (place >= capacity_) return;
    char* at = memory_ + kEventsAt + place * sizeof(Event);
    // Its kind last: without it the place counts as not filled.
    Event written = event;
    written.kind = EventKind::kNothing;
    std::memcpy(at, &written, sizeof written);
    __atomic_store_n(at + offsetof(Event, kind), static_cast<char>(event.kind), __ATOMIC_RELEASE);
  }

  // Who has a place may still fill it, and nobody gets another one.
  void Close() {
    const uint64_t used = next_.exchange(kNoMore);
    if (used >= kNoMore) return;
    Claim(used);
    const size_t needed = kEventsAt + std::min(used, capacity_) * sizeof(Event);
    // Where that fails the file is only longer.
    [[maybe_unused]] const int status = ftruncate(descriptor_, static_cast<off_t>(needed));
    close(descriptor_);
  }

  uint64_t claimed() const { return header_->claimed; }
  uint64_t capacity() const { return capacity_; }

 private:
  // trace/reading.py reads it.
  struct Header {
    char magic[8] = {'k', 'v', 'x', 't', 'r', 'a', 'c', 'e'};
    uint32_t version = 1;
    uint32_t event_bytes = sizeof(Event);
    uint64_t capacity = 0;
    std::atomic<uint64_t> claimed{0};  // events, those without room included
  };

  // Never counted up: who comes here only after Close has said how many there are adds nothing.
  void Claim(uint64_t count) {
    uint64_t claimed = header_->claimed.load(std::memory_order_relaxed);
    while (claimed < count &&
           !header_->claimed.compare_exchange_weak(claimed, count, std::memory_order_relaxed)) {
    }
  }

  const uint64_t capacity_;  // events
  const size_t bytes_;
  int descriptor_ = -1;
  char* memory_ = nullptr;
  Header* header_ = nullptr;
  std::atomic<uint64_t> next_{0};
};

Recorder::Recorder() = default;
Recorder::~Recorder() { Close(); }

void Recorder::Open(const std::string& path, uint64_t capacity, uint64_t first, uint64_t last) {
  auto file = std::make_unique<File>(path, capacity);
  Close();
  std::lock_guard<std::mutex> lock(mutex_);
  files_.push_back(std::move(file));
  file_ = files_.back().get();
  first_ = first;
  last_ = last;
  step_since_ = 0;
  layer_end_ = 0;
  const uint64_t reached = step_;
  on_ = reached + 1 >= first && reached < last;
}

void Recorder::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  on_ = false;
  if (File* file = file_.exchange(nullptr)) file->Close();
}

void Recorder::Write(Event event) {
  File* file = file_;
  if (file == nullptr) return;
  if (event.end == 0) event.end = NowInNanoseconds();
  if (event.begin == 0) event.begin = event.end;
  event.thread = ThisThread();
  file->Write(event);
}

void Recorder::RecordLayer(Event event) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    event.begin = layer_end_;
    event.end = layer_end_ = NowInNanoseconds();
  }
  Record(event);
}

bool Recorder::BeginStep(uint64_t round) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (round <= step_) return false;
  const uint64_t before = step_.exchange(round);
  if (file_ == nullptr) return true;
  if (step_since_ != 0 && on()) {
    Event event;
    event.kind = EventKind::kStep;
    event.round = static_cast<uint32_t>(before);
    event.begin = step_since_;
    Write(event);
  }
  on_ = round + 1 >= first_ && round < last_;
  step_since_ = Begin();
  return true;
}

uint64_t Recorder::NumberOf(const std::string& layer) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [found, is_new] = numbers_.emplace(layer, layers_.size());
  if (is_new) layers_.push_back(layer);
  return found->second;
}

std::vector<std::string> Recorder::layers() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return layers_;
}

uint64_t Recorder::recorded() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (files_.empty()) return 0;
  return std::min(files_.back()->claimed(), files_.back()->capacity());
}

uint64_t Recorder::dropped() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (files_.empty()) return 0;
  const File& file = *files_.back();
  return file.claimed() - std::min(file.claimed(), file.capacity());
}

}  // namespace kvstore_ext
