// The site of the documentation: the pages as they are in the repository, with a menu
// made of the lists in docs/README.md. A link that leads nowhere fails the build.
import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

const source = join(import.meta.dirname, '..')

// sections are the headings of docs/README.md with the links below each.
function sections() {
  const found = []
  for (const line of readFileSync(join(source, 'docs/README.md'), 'utf8').split('\n')) {
    const heading = line.match(/^## (.*)/)
    if (heading) found.push({ text: heading[1], collapsed: false, items: [] })
    for (const [, text, target] of line.matchAll(/\[([^\]]+)\]\(([^)]+\.md)\)/g)) {
      const page = posix.join('/docs', target).replace(/\.md$/, '')
      if (found.length > 0) found.at(-1).items.push({ text, link: page === '/README' ? '/' : page })
    }
  }
  return found
}

export default {
  title: 'Workload Variant Autoscaler',
  description: 'Decides how many replicas of a large language model run on Kubernetes, and on which kind of GPU',
  outDir: '../../../site',
  rewrites: { 'README.md': 'index.md', 'docs/README.md': 'docs/index.md' },
  // Tables are wide: names break inside of their cells, and a phone scrolls the table,
  // and a picture whose text would be too small.
  head: [['style', {}, '.vp-doc td code{white-space:normal;overflow-wrap:anywhere}.vp-doc td:first-child:has(code){min-width:16em}.vp-doc div[class*=language-] code{font-size:12.5px}.VPDoc.has-aside .content-container{max-width:800px!important}@media(max-width:640px){.vp-doc p:has(>img){overflow-x:auto}.vp-doc p>img{min-width:640px}}']],
  themeConfig: {
    nav: [
      { text: 'Quickstart', link: '/docs/quickstart' },
      { text: 'Runbook', link: '/docs/operate/runbook' },
      { text: 'Reference', link: '/docs/reference/variantautoscaling' },
    ],
    sidebar: sections(),
    outline: [2, 3],
    search: { provider: 'local' },
  },
}
