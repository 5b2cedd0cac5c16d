/** The licences of what the bundle holds of others: `node notices.ts BUNDLE OUT`, where BUNDLE is esbuild's metafile. */

import * as fs from 'node:fs';
import * as path from 'node:path';

const LICENCE = /^(licen[cs]e|copying|notice)([.-].*)?$/i;

function main(bundle: string, out: string): void {
  const folders = packages(Object.keys(JSON.parse(fs.readFileSync(bundle, 'utf8')).inputs));
  const intro = 'The extension holds parts of these packages. Their licences:';
  fs.writeFileSync(out, [intro, ...folders.map(notice)].join(`\n\n${'-'.repeat(80)}\n\n`) + '\n');
}

/** The innermost package of each file, every one once. */
function packages(files: readonly string[]): string[] {
  const found = files.map((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  return [...new Set(found.filter((folder) => folder !== undefined))].sort();
}

function notice(folder: string): string {
  const { name, version, license } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const texts = fs.readdirSync(folder).filter((file) => LICENCE.test(file)).sort();
  if (texts.length === 0) {
    throw new Error(`${folder}: has no licence file; without its text it cannot be given to others`);
  }
  const read = (file: string) => fs.readFileSync(path.join(folder, file), 'utf8').replaceAll('\r\n', '\n').trim();
  return [`${name} ${version} (${license})`, ...texts.map(read)].join('\n\n');
}

main(process.argv[2], process.argv[3]);
