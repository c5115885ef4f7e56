#include "worker/worker_key.h"

namespace kvstore_ext {

Worker::Key::Key(Worker* of_worker, uint64_t of_id, const SliceDeclaration& declaration_of_slices,
                 std::shared_ptr<KeyCodec> own_codec, std::vector<Slice> own_slices)
    : worker(of_worker),
      id(of_id),
      declared(declaration_of_slices),
      cut(std::move(own_slices)),
      codec(std::move(own_codec)),
      left(cut.size()),
      arrived(cut.size()) {}

void Worker::Key::SendControl(int server, Message message) {
  message.header.key = id;
  worker->links_.at(server)->SendControl(std::move(message));
}

void Worker::Key::SendData(int server, Message message) {
  message.header.key = id;
  worker->links_.at(server)->Send(std::move(message));
}

void Worker::Key::AdmitRound(uint64_t number, Encoding encoding) {
  worker->AdmitRound(this, number, encoding);
}

bool Worker::Key::IsMissing(const Slice& slice) {
  std::lock_guard<std::mutex> lock(mutex);
  return busy && !arrived[slice.index];
}

void Worker::Key::SendAgain(const Slice& slice) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!busy || !admitted || arrived[slice.index]) return;
  ++missing;  // so that the operation, and with it the input, stays until that is done
  worker->tasks_.Run(priority, [this, again = round, &slice] {
    if (IsMissing(slice)) worker->TrySendSlice(*again, slice);
    std::unique_lock<std::mutex> own(mutex);
    if (busy && IsLast(again->number)) worker->Arrived(this, again->encoding, &own);
  });
}

void Worker::Key::WriteInTurn(const Slice& slice, uint64_t number, const Result& result,
                              std::function<void()> write) {
  const Encoding encoding = result.encoding;
  const size_t bytes = result.payload.size;
  worker->tasks_.Run(priority, [this, &slice, number, encoding, bytes, write = std::move(write)] {
    const double begun = Now();
    const int64_t recorded_since = worker->recorder_.Begin();
    try {
      write();
    } catch (const std::exception& error) {
      return worker->Abort(worker->Named(error.what()));
    }
    worker->statistics_.Count([&](Totals* totals) { totals->decode += Now() - begun; });
    std::unique_lock<std::mutex> lock(mutex);
    if (!busy || !IsLast(number)) return;
    worker->RecordWritten(*this, slice, recorded_since, bytes);
    worker->Arrived(this, encoding, &lock);
  });
}

void Worker::Key::RunLast(std::function<void()> task) {
  worker->tasks_.Run(TaskThreads::kLast, [task = std::move(task)] {
    try {
      task();
    } catch (const std::exception&) {  // what it prepares is done later, where errors are told
    }
  });
}

std::set<int> Worker::Key::AwaitedServers() const {
  std::set<int> servers = admitted ? std::set<int>() : codec->awaited();
  if (!servers.empty()) return servers;
  for (const Slice& slice : cut) {
    if (!arrived[slice.index]) servers.insert(slice.server);
  }
  return servers;
}

}  // namespace kvstore_ext
