"""Simplified forms of the traditional Chinese characters and words in sentences to a phone.

Every form has the length of its source, so that places in the folded text are places in the original.
"""

import re

__all__ = ["simplify"]

# Pairs: a traditional character and its simplified form. Characters that no sentence to a phone needs are left out.
_PAIRS = """
萬万 與与 東东 兩两 個个 為为 爲为 麼么 麽么 樂乐 書书 於于 們们 會会 傳传 體体 來来 倆俩 條条 備备 內内 關关 寫写 況况
準准 減减 幾几 擊击 劃划 剛刚 創创 別别 剎刹 辦办 動动 勞劳 單单 賣卖 臥卧 廠厂 廳厅 歷历 曆历 壓压 廚厨 發发 髮发 變变
葉叶 臺台 號号 後后 嗎吗 聽听 啟启 啓启 響响 問问 喚唤 噸吨 國国 圖图 場场 塊块 聲声 復复 複复 夠够 頭头 媽妈 將将 爾尔
爺爷 層层 師师 帶带 幫帮 並并 併并 廣广 庫库 應应 開开 張张 強强 當当 錄录 從从 憶忆 憂忧 態态 總总 戶户 紮扎 掃扫 擾扰
報报 擇择 據据 攝摄 數数 鬥斗 斷断 無无 舊旧 時时 顯显 曬晒 暫暂 術术 機机 標标 欄栏 樣样 檢检 橫横 歡欢 氣气 沒没 測测
瀏浏 滾滚 滿满 滅灭 燈灯 點点 煩烦 熱热 愛爱 狀状 現现 電电 畫画 畵画 盤盘 碼码 確确 禮礼 稱称 種种 筆笔 簽签 籤签 籃篮
緊紧 級级 線线 綫线 終终 經经 給给 絡络 絕绝 統统 繼继 續续 編编 縮缩 網网 聯联 腦脑 節节 藍蓝 補补 裝装 裏里 裡里 見见
視视 覽览 觀观 觸触 計计 訂订 認认 讓让 訊讯 記记 講讲 許许 設设 訪访 訴诉 試试 話话 詢询 該该 說说 説说 請请 讀读 誰谁
調调 謝谢 貝贝 貼贴 費费 趕赶 車车 轉转 軟软 輕轻 載载 輯辑 輸输 邊边 過过 運运 還还 這这 進进 連连 選选 郵邮 醫医 釋释
釘钉 鐘钟 鈕钮 鈴铃 銀银 鏈链 鎖锁 鍵键 長长 門门 閃闪 閉闭 間间 鬧闹 靜静 頁页 頂顶 項项 順顺 須须 預预 頻频 題题 風风
飛飞 館馆 馬马 駕驾 螢萤 簡简 資资 處处 導导 實实 識识 雲云 銷销 錢钱 鐵铁 錶表 顆颗 饋馈 驗验 薩萨 隻只 隨随 雙双 離离
難难 靈灵 願愿 類类 飯饭 飲饮 養养 餓饿 髒脏 鮮鲜 鳥鸟 麵面 黃黄 齊齐 齡龄 遲迟 遠远 適适 達达 違违 鄰邻 錯错 閱阅 陽阳
陰阴 陳陈 際际 隊队 階阶 險险 雜杂 雞鸡 霧雾 頓顿 領领 額额 顏颜 顧顾 飄飘 騎骑 驚惊 鬆松 魚鱼 鹽盐 孫孙 學学 寧宁 寶宝
專专 尋寻 對对 屆届 屬属 島岛 帳帐 幣币 廢废 彈弹 徹彻 恆恒 惡恶 慶庆 憑凭 懷怀 戰战 戲戏 換换 揚扬 搶抢 損损 擔担 擁拥
擋挡 擴扩 擺摆 敗败 敵敌 暈晕 暢畅 曉晓 業业 極极 榮荣 樓楼 橋桥 檔档 歲岁 歸归 殺杀 殼壳 毀毁 氫氢 決决 淚泪 淨净 淺浅
湯汤 溫温 灣湾 燒烧 爭争 牆墙 獎奖 獨独 獲获 環环 產产 畢毕 療疗 監监 盜盗 睏困 礙碍 禍祸 禦御 穩稳 窮穷 競竞 範范 築筑
籌筹 約约 紅红 紀纪 純纯 紙纸 組组 細细 結结 絲丝 綠绿 維维 緒绪 緩缓 練练 縣县 績绩 繞绕 繪绘 罷罢 習习 聖圣 聰聪 職职
肅肃 膽胆 臨临 舉举 艱艰 華华 蘋苹 蘭兰 蟲虫 衛卫 衝冲 親亲 規规 覺觉 訓训 評评 詞词 詳详 誤误 課课 談谈 論论 證证 護护
財财 貨货 販贩 貴贵 買买 賀贺 賓宾 賞赏 賬账 購购 贈赠 贏赢 趙赵 跡迹 踐践 較较 輛辆 輪轮 辭辞 農农 遊游 週周 劉刘 吳吴
楊杨 鄭郑 羅罗 蘇苏 盧卢 蔣蒋 賈贾 韓韩 馮冯 鄧邓 閻阎 龍龙 龐庞 嬰婴 奧奥 婦妇 姊姐 妳你 甚什 祇只 著着 喺在 撥拨 捲卷
攜携
"""
_CHARACTERS = str.maketrans({pair[0]: pair[1] for pair in _PAIRS.split()})
_WORDS = {  # of Taiwan and Hong Kong, in simplified characters
    "萤幕": "屏幕",
    "荧幕": "屏幕",
    "简讯": "短信",
    "讯息": "信息",
    "行动数据": "移动数据",
    "行动网络": "移动网络",
    "行动网路": "移动网络",
    "网路": "网络",
    "剪贴簿": "剪贴板",
    "程式": "程序",
    "相簿": "相册",
    "搜寻": "搜索",
    "飞航模式": "飞行模式",
    "蓝芽": "蓝牙",
    "拨放": "播放",
    "捷径": "快捷",
    "传个简讯": "发个短信",
    "传简讯": "发短信",
    "传个讯息": "发个信息",
    "传讯息": "发信息",
}
_WORD = re.compile("|".join(sorted(_WORDS, key=len, reverse=True)))


def simplify(text: str) -> str:
    """Return a text in simplified characters and in the words of the templates, of the same length."""
    plain = text.translate(_CHARACTERS)
    return _WORD.sub(lambda found: _WORDS[found[0]], plain)
