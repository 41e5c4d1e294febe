//! Files over one stream: manifest, chunks with hashes, resume.
